// The server stream of AdminService/BackUpStore: how far a backup is, and what is missing in it.

#ifndef SERVER_API_BACKUP_STREAM_H_
#define SERVER_API_BACKUP_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include "absl/status/statusor.h"

#include "assay/v1/admin_service.pb.h"

#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

// Answers one call, refused if `identity` is an error, and deletes itself when the call is over. A
// client that is gone ends the backup, and then there is no new one. `backend` must outlive it.
grpc::ServerWriteReactor<v1::BackUpStoreResponse>* NewBackup(
    const Backend* backend, const absl::StatusOr<auth::Identity>& identity,
    const v1::BackUpStoreRequest& request);

}  // namespace assay::api

#endif  // SERVER_API_BACKUP_STREAM_H_
