// How a client reaches the coordinator: over TLS with a certificate or a token, or over a Unix
// socket, where the kernel says who is calling.

#ifndef COMMON_RPC_CHANNEL_H_
#define COMMON_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/rpc/endpoint.h"

namespace assay {

// A channel to `endpoint`; connects when first used. INVALID_ARGUMENT if a TCP target has no CA:
// the coordinator is never spoken to in the clear.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const Endpoint& endpoint);

// Sets the deadline and the token of one call. Every call has a deadline.
void PrepareCall(const Endpoint& endpoint, absl::Duration timeout, grpc::ClientContext* context);

}  // namespace assay

#endif  // COMMON_RPC_CHANNEL_H_
