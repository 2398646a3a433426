// Rule sets by name or file, and assay rules.

#ifndef CLI_RULE_SETS_H_
#define CLI_RULE_SETS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/command.h"
#include "cli/environment.h"

#include "common/rules/ruleset.h"

namespace assay::cli {

// Shared because a built-in set lives for ever and a file's set as long as its last user.
using RuleSetRef = std::shared_ptr<const rules::RuleSet>;

// The built-in round `name` ("v1.0", "hpc-3.0.0"), or the facility's round in the TOML file `name`.
// NOT_FOUND with the known names; INVALID_ARGUMENT with file:line:column for a damaged file.
absl::StatusOr<RuleSetRef> LoadRuleSet(const Environment& environment, absl::string_view name);

std::vector<Command> RulesCommands();

}  // namespace assay::cli

#endif  // CLI_RULE_SETS_H_
