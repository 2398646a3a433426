// How a client reaches the coordinator: over TLS with a certificate or a token, or over a Unix
// socket, where the kernel says who is calling.

#ifndef COMMON_RPC_CHANNEL_H_
#define COMMON_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace assay {

struct Endpoint {
  std::string target;           // "host:port" or "unix:/path/to/socket"
  std::string ca_pem;           // the coordinator's CA; required unless the target is a Unix socket
  std::string certificate_pem;  // this side's certificate and key; both or neither
  std::string key_pem;
  std::string token;  // sent as "authorization: Bearer ..."; never over plain TCP
};

// A channel to `endpoint`; connects when first used. INVALID_ARGUMENT if a TCP target has no CA:
// the coordinator is never spoken to in the clear.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const Endpoint& endpoint);

// Sets the deadline and the token of one call. Every call has a deadline.
void PrepareCall(const Endpoint& endpoint, absl::Duration timeout, grpc::ClientContext* context);

}  // namespace assay

#endif  // COMMON_RPC_CHANNEL_H_
