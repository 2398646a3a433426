// Which coordinator to talk to, by what a program was told: by its flags, its environment, its
// files. Where the settings come from is the program's matter.

#ifndef COMMON_CLIENT_ENDPOINTS_H_
#define COMMON_CLIENT_ENDPOINTS_H_

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/rpc/endpoint.h"

namespace assay::client {

// One thing that the program was told.
struct EndpointSetting {
  std::string value;
  std::string origin;  // for messages: "--server", "ASSAY_SERVER", "/etc/assay/config.toml:3"
  int level = 0;       // of settings that exclude each other the lower one counts
};

// Paths are absolute.
struct EndpointSettings {
  std::optional<EndpointSetting> server;  // host:port
  std::optional<EndpointSetting> socket;  // path of a Unix socket
  std::optional<EndpointSetting> ca;      // path of the coordinator's CA certificate, PEM
  std::optional<EndpointSetting> token;
  std::optional<EndpointSetting> token_file;  // path; "-": the first line of `standard_input`
  std::istream* standard_input = nullptr;     // may be null where no token_file is "-"
  // Where a coordinator may listen on this host, the likeliest first: for when neither server nor
  // socket is set.
  std::vector<std::string> default_sockets;
};

// The endpoint by the strongest setting that names a server or a socket, with its CA and token;
// without either the first of the default sockets that is there, without them. INVALID_ARGUMENT if
// server and socket are equally strong, or a file cannot be read; UNAVAILABLE if nothing is set and
// no socket is there. Reads files, and talks to nobody.
absl::StatusOr<Endpoint> ResolveEndpoint(const EndpointSettings& settings);

}  // namespace assay::client

#endif  // COMMON_CLIENT_ENDPOINTS_H_
