// What a gRPC call shows about its sender.

#ifndef SERVER_API_EVIDENCE_H_
#define SERVER_API_EVIDENCE_H_

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"

#include "server/auth/authenticator.h"
#include "server/gate/connection_table.h"

namespace assay::api {

// What the gate has learnt of the call's connection, and the token of its header. Never blocks.
// UNAUTHENTICATED if the call came by another way than the gate, or if its authorization header is
// malformed, given more than once, or given beside a certificate, which says already who calls.
absl::StatusOr<auth::Evidence> EvidenceOf(const grpc::ServerContextBase& context,
                                          const gate::ConnectionTable& connections);

}  // namespace assay::api

#endif  // SERVER_API_EVIDENCE_H_
