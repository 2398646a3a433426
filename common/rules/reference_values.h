// The hyperparameters of the reference implementations, and a submission's beside them.

#ifndef COMMON_RULES_REFERENCE_VALUES_H_
#define COMMON_RULES_REFERENCE_VALUES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/rules/hyperparameters.h"
#include "common/rules/ruleset.h"

namespace assay::rules {

// What the reference implementation of a round uses by default, by log key; for DeepCAM the
// configuration of its reference convergence point at batch size 128. Empty for a benchmark without
// one here.
Hyperparameters ReferenceHyperparameters(const RuleSet& rules, absl::string_view benchmark);

// The hyperparameters that a log says it used: the first value of every key that a closed
// submission of the benchmark is judged by, or that the reference has. Never fails: damaged lines
// are skipped.
Hyperparameters LoggedHyperparameters(absl::string_view log, const RuleSet& rules,
                                      absl::string_view benchmark);

struct HyperparameterRow {
  enum class Standing {
    kSame,      // the reference's value
    kTuned,     // another value, which the division allows
    kRefused,   // another value, which it does not
    kUnknown,   // no rule and no reference knows the name
    kNotGiven,  // the reference has one, the submission does not say
  };
  std::string key;
  std::optional<JsonValue> reference;
  std::optional<JsonValue> value;
  Standing standing = Standing::kNotGiven;
  std::string allowed;  // what the division allows, in words; empty: anything
  std::string rule_id;  // that says so
};

// "same", "tuned", "refused", "unknown", "not given".
absl::string_view StandingName(HyperparameterRow::Standing standing);

// Every hyperparameter that the division's rules or the reference know for the benchmark, or that
// `values` names, by key. Without values it is the division's table.
std::vector<HyperparameterRow> CompareWithReference(const RuleSet& rules,
                                                    absl::string_view benchmark,
                                                    absl::string_view division,
                                                    const Hyperparameters& values);

}  // namespace assay::rules

#endif  // COMMON_RULES_REFERENCE_VALUES_H_
