// The coordinator's configuration: one text proto (ServerConfig), read and validated whole.

#ifndef SERVER_CONFIG_H_
#define SERVER_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

#include "server/api/server.h"
#include "server/auth/authenticator.h"
#include "server/core/core.h"
#include "server/runtime/runtime.h"

namespace assay {

// Reads the file at `path`. Relative paths in it are relative to its folder. INVALID_ARGUMENT with
// all problems, a line each: path:line:column for what does not parse, the field for what does not
// hold.
absl::StatusOr<v1::ServerConfig> LoadServerConfig(const std::string& path);

// The same from text; `path` is for messages, and relative paths are relative to its folder.
absl::StatusOr<v1::ServerConfig> ParseServerConfig(const std::string& text,
                                                   const std::string& path);

// What others say against a configuration that holds by itself, a line each: Slurm is asked, and
// the programs of notify are looked for.
std::vector<std::string> ServerConfigWarnings(const v1::ServerConfig& config);

// What a loaded configuration means for each part. The files it names were read when it was loaded;
// errors here mean that they have changed since.
absl::StatusOr<api::ListenOptions> ListenOptionsOf(const v1::ServerConfig& config);
absl::StatusOr<CertificateAndKey> CaOf(const v1::ServerConfig& config);
std::vector<auth::LocalUser> LocalUsersOf(const v1::ServerConfig& config);
core::Policy PolicyOf(const v1::ServerConfig& config);
runtime::RuntimeOptions RuntimeOptionsOf(const v1::ServerConfig& config);

}  // namespace assay

#endif  // SERVER_CONFIG_H_
