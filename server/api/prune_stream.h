// The server stream of AdminService/PruneStore: what may be removed by the configuration, or is.

#ifndef SERVER_API_PRUNE_STREAM_H_
#define SERVER_API_PRUNE_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include "absl/status/statusor.h"

#include "assay/v1/admin_service.pb.h"

#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

// Answers one call, refused if `identity` is an error, and deletes itself when the call is over. A
// client that is gone ends it after the files that are being removed. `backend` must outlive it.
grpc::ServerWriteReactor<v1::PruneStoreResponse>* NewPruning(
    const Backend* backend, const absl::StatusOr<auth::Identity>& identity,
    const v1::PruneStoreRequest& request);

}  // namespace assay::api

#endif  // SERVER_API_PRUNE_STREAM_H_
