// Where the coordinator is, and what a client shows it.

#ifndef COMMON_RPC_ENDPOINT_H_
#define COMMON_RPC_ENDPOINT_H_

#include <string>

namespace assay {

struct Endpoint {
  std::string target;           // "host:port" or "unix:/path/to/socket"
  std::string ca_pem;           // the coordinator's CA; required unless the target is a Unix socket
  std::string certificate_pem;  // this side's certificate and key; both or neither
  std::string key_pem;
  std::string token;  // sent as "authorization: Bearer ..."; never over plain TCP
};

}  // namespace assay

#endif  // COMMON_RPC_ENDPOINT_H_
