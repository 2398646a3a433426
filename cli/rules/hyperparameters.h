// Hyperparameters beside the reference's: in assay plan, and as a round's table.

#ifndef CLI_RULES_HYPERPARAMETERS_H_
#define CLI_RULES_HYPERPARAMETERS_H_

#include <vector>

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "cli/terminal/print.h"
#include "common/json_value.h"
#include "common/rules/hyperparameters.h"
#include "common/rules/ruleset.h"

namespace assay::cli {

// The values of a spec; one whose text is no JSON is left out.
rules::Hyperparameters HyperparametersOf(const v1::SubmissionSpec& spec);

// Replaces those of `spec`. A value beyond what a coordinator takes is left out.
void SetHyperparameters(const rules::Hyperparameters& values, v1::SubmissionSpec* spec);

// One row per hyperparameter: key, reference, value, standing, allowed, rule.
Json HyperparameterRows(const rules::RuleSet& rules, const std::string& benchmark,
                        const std::string& division, const rules::Hyperparameters& values);
// With the submission's values or, for a round's table, without.
std::vector<Column> HyperparameterColumns(bool has_values);

// The value as the printer knows it.
Json ToPrintable(const JsonValue& value);

// assay rules hyperparameters.
std::vector<Command> TuningCommands();

}  // namespace assay::cli

#endif  // CLI_RULES_HYPERPARAMETERS_H_
