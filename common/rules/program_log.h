// The log of somebody else's program beside what its submission says, which the native trainer
// cannot get wrong. Pure functions of their arguments.

#ifndef COMMON_RULES_PROGRAM_LOG_H_
#define COMMON_RULES_PROGRAM_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/mllog.h"
#include "common/rules/finding.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

// The rules, by id.
std::span<const TextRule> ProgramLogRules();

// What the run was given, and must say.
struct LoggedFacts {
  std::string organization, system, benchmark, division, status;
  int64_t seed = 0;
  int64_t node_count = 0;
  std::optional<int64_t> train_samples;  // nullopt: not known, and not compared
  std::optional<int64_t> eval_samples;
  std::map<std::string, JsonValue> hyperparameters;  // by their key in the log
};

// Compares a log that comes in pieces of any size. Not thread-safe.
//   R-WRK-021 identity; 022 seed; 023 nodes; 024 samples; 025 a hyperparameter that is another or
//   missing; 026, a warning, one that the submission does not have.
class ProgramLogCheck {
 public:
  explicit ProgramLogCheck(const LoggedFacts& facts);

  void Add(absl::string_view bytes);
  // One finding for each key. Call once; Add nothing afterwards.
  std::vector<Finding> Finish();

 private:
  struct Expected {
    const char* rule;
    JsonValue value;
    bool is_seen = false;
    std::optional<Finding> finding;  // of the first line that differs
  };

  void TakeLine(absl::string_view line, bool is_too_long);

  std::map<std::string, Expected> expected_;
  std::map<std::string, Finding> unknown_;  // hyperparameters beyond the submission's
  MllogLineStream lines_;
  int64_t line_ = 0;
};

// R-WRK-027, a warning: this file of a run's was logged beside the log that counts.
Finding LoggedElsewhere(absl::string_view file, int64_t size_bytes);

}  // namespace assay::rules

#endif  // COMMON_RULES_PROGRAM_LOG_H_
