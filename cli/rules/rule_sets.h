// Rule sets by name or file, and assay rules.

#ifndef CLI_RULES_RULE_SETS_H_
#define CLI_RULES_RULE_SETS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "cli/command/command.h"
#include "cli/terminal/environment.h"
#include "common/rules/ruleset.h"

namespace assay::cli {

// Shared because a built-in set lives for ever and a file's set as long as its last user.
using RuleSetRef = std::shared_ptr<const rules::RuleSet>;

// The built-in round `name` ("v1.0", "hpc-3.0.0"), the facility's round in the TOML file `name`,
// the frozen pack in the JSON file `name`, or the shipped example of that name ("cosmoflow-mini").
// A pack's signature must be by the key in the file `public_key`, or in ASSAY_RULES_KEY if that is
// empty. NOT_FOUND with the known names; INVALID_ARGUMENT with file:line:column for a damaged file;
// DATA_LOSS for a pack whose digest or signature is wrong.
absl::StatusOr<RuleSetRef> LoadRuleSet(const Environment& environment, absl::string_view name,
                                       const std::string& public_key = "");

// --public-key of the commands that may load a pack.
Option PublicKeyOption();

// The name under which the coordinator knows a round: "hpc-1.0.0" for v1.0; `name` itself if it is
// no built-in round.
std::string CanonicalRound(const std::string& name);

std::vector<Command> RulesCommands();

}  // namespace assay::cli

#endif  // CLI_RULES_RULE_SETS_H_
