// assay web: the way from the command line to the site.

#ifndef CLI_WEB_OPEN_H_
#define CLI_WEB_OPEN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "cli/command/command.h"
#include "common/client/client.h"

namespace assay::cli {

// A link that signs a browser in as the caller, once, within a minute.
struct SignInLink {
  std::string url;
  std::string expire_time;  // RFC 3339
};

// Asks the coordinator for a code. `site`: https://HOST[:PORT]; empty: where the coordinator says
// that the site is. FAILED_PRECONDITION if it does not say.
absl::StatusOr<SignInLink> MakeSignInLink(const client::Client& client, const std::string& site);

std::vector<Command> WebCommands();

}  // namespace assay::cli

#endif  // CLI_WEB_OPEN_H_
