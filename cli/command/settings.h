// The settings of the command line, from its surroundings.

#ifndef CLI_COMMAND_SETTINGS_H_
#define CLI_COMMAND_SETTINGS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"

#include "cli/terminal/environment.h"
#include "common/client/config.h"
#include "common/client/endpoints.h"

namespace assay::cli {

// `flags`: what the command line gave, by key. Errors as of client::Config::Load.
absl::StatusOr<client::Config> LoadConfig(const Environment& environment,
                                          const std::map<std::string, std::string>& flags);

// Where `config set` writes: the user's file, or the project's (the nearest assay.toml, else one in
// the working directory).
std::string UserConfigPath(const Environment& environment);
std::string ProjectConfigPath(const Environment& environment);

// Which coordinator `config` names; without one a running `assay dev`, then the system's.
client::EndpointSettings EndpointSettingsOf(const Environment& environment,
                                            const client::Config& config);

}  // namespace assay::cli

#endif  // CLI_COMMAND_SETTINGS_H_
