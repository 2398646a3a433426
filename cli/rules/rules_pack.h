// Frozen rules: writing a round as a signed file, verifying one, and comparing two rounds.

#ifndef CLI_RULES_RULES_PACK_H_
#define CLI_RULES_RULES_PACK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "cli/command/command.h"
#include "cli/terminal/environment.h"
#include "common/rules/ruleset.h"

namespace assay::cli {

struct VerifiedPack {
  rules::RuleSetData data;
  std::string digest;
};

// The pack in the file `path`, its digest and its signature checked. `public_key` is a file with an
// Ed25519 key in PEM; if empty, ASSAY_RULES_KEY names one. INVALID_ARGUMENT if there is no key or
// the file is no pack; DATA_LOSS if digest or signature are wrong.
absl::StatusOr<VerifiedPack> LoadPack(const Environment& environment, const std::string& path,
                                      const std::string& public_key);

std::vector<Command> RulesPackCommands();

}  // namespace assay::cli

#endif  // CLI_RULES_RULES_PACK_H_
