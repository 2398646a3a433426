// What can be judged before a run starts: hyperparameters and the number of runs.

#ifndef COMMON_RULES_HYPERPARAMETERS_H_
#define COMMON_RULES_HYPERPARAMETERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/rules/finding.h"
#include "common/rules/ruleset.h"

namespace assay::rules {

using Hyperparameters = std::map<std::string, JsonValue>;  // by log key

// What the round says against these values of `benchmark` in `division` ("closed" or "open"): an
// error for a value that the log check would refuse or the document forbids and for an extension
// (extensions.h) that no rule of the round is about, a warning for a name that is no hyperparameter
// of the closed benchmark. Values left out are not judged: the log shows
// what was used. An unknown benchmark or division is an error as well.
std::vector<Finding> CheckHyperparameters(const RuleSet& rules, absl::string_view benchmark,
                                          absl::string_view division,
                                          const Hyperparameters& values);

// The names of the configs whose rules judge such a submission: those of the division, of the
// benchmark, and what its values ask for (an optimizer's, a schedule's). A later one's rule for a
// key replaces an earlier one's. Some may not exist in the round.
std::vector<std::string> HyperparameterConfigs(const RuleSet& rules, absl::string_view benchmark,
                                               absl::string_view division,
                                               const Hyperparameters& values);

// What the round says against training `benchmark` on a dataset with so many samples: the log of
// every run would show them, and be refused.
std::vector<Finding> CheckSampleCounts(const RuleSet& rules, absl::string_view benchmark,
                                       absl::string_view division, int64_t train_samples,
                                       int64_t eval_samples);

// R-RUN-001: a set must have at least the number of runs that the round demands. R-RUN-002, a
// warning: it has more, and ScoreWindows will choose. Also an error for an unknown benchmark.
std::vector<Finding> CheckRunCount(const RuleSet& rules, absl::string_view benchmark, int runs);

// R-RUN-001 for a throughput set: fewer instances than runs that the round demands. R-RUN-003: the
// round has no throughput. Also an error for an unknown benchmark.
std::vector<Finding> CheckInstanceCount(const RuleSet& rules, absl::string_view benchmark,
                                        int instances);

}  // namespace assay::rules

#endif  // COMMON_RULES_HYPERPARAMETERS_H_
