// What a gRPC call shows about its sender.

#ifndef SERVER_API_EVIDENCE_H_
#define SERVER_API_EVIDENCE_H_

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"

#include "server/auth/authenticator.h"
#include "server/auth/peer_table.h"

namespace assay::api {

// Reads the peer's user (Unix socket), certificate (TLS) and token (header) off a call. Never
// blocks. UNAUTHENTICATED if the authorization header is malformed or given more than once.
absl::StatusOr<auth::Evidence> EvidenceOf(const grpc::ServerContextBase& context,
                                          const auth::PeerTable& peers);

}  // namespace assay::api

#endif  // SERVER_API_EVIDENCE_H_
