// Rounds that a facility defines itself, in a file: a built-in round with its own target, number of
// runs and constraints, for one of its benchmarks or for a benchmark of the facility's own, which
// is trained by external programs. deploy/rounds/ has examples, docs/rounds.md says how to write
// one.
//
//   [round]
//   name = "cosmoflow-mini"            # required; must not start with "hpc-"
//   base = "hpc-3.0.0"                 # required
//   label = "Facility round, not an MLPerf result"
//   init_limit_s = 1800                # optional
//   first_pass_from_storage = true     # optional; R-IOB-001 is an error then
//   first_touch_assurance = "proven"   # optional; less on any node is an error then (R-TIM-008)
//   [benchmark]
//   name = "cosmoflow"                 # required; the round has this benchmark only
//   runs = 3                           # required
//   target = 0.40                      # required
//   quality_key = "eval_perplexity"    # for a benchmark of its own, and required then
//   better = "lower"                   # likewise; or "higher"
//   [[rule]]                           # any number: replaces or adds the rule of a key
//   id = "R-FAC-001"                   # required, "R-FAC-" and digits
//   key = "train_samples"              # required
//   occurrence = "exactly_one"         # or "at_least_one", "optional"; default exactly_one
//   equals = 256                       # any of: equals, one_of = [..], above, below,
//   at_least = 1                       #         at_least, at_most
//   hyperparameter = true              # judged on submission too; default false
//   divisions = ["closed", "open"]     # default both
//   section = "..."                    # optional texts for the finding
//   remedy = "..."

#ifndef COMMON_RULES_FACILITY_ROUND_H_
#define COMMON_RULES_FACILITY_ROUND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/rules/ruleset.h"

namespace assay::rules {

// The rule set that `toml` defines; is_mlperf is false. `source` names the file in messages.
// INVALID_ARGUMENT, as "source:line:column: ...", for anything unknown, missing or of wrong type.
absl::StatusOr<std::unique_ptr<const RuleSet>> ParseFacilityRound(absl::string_view toml,
                                                                  absl::string_view source);

}  // namespace assay::rules

#endif  // COMMON_RULES_FACILITY_ROUND_H_
