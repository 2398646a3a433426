// Rounds that a facility defines itself, in a file: a built-in round with its own target, number of
// runs and constraints, for one of its benchmarks or for a benchmark of the facility's own, which
// is trained by external programs. deploy/rounds/ has examples, docs/rounds.md says how to write
// one; round_file.h has its keys.

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
