// The server stream of AdminService/VerifyStore: faults as they are found.

#ifndef SERVER_API_VERIFY_STREAM_H_
#define SERVER_API_VERIFY_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"

#include "assay/v1/admin_service.pb.h"

#include "server/api/services.h"

namespace assay::api {

// Answers one call, refused if `admitted` is not OK, and deletes itself when the call is over. A
// client that reads slowly slows the verification; one that is gone ends it. `backend` must outlive
// it.
grpc::ServerWriteReactor<v1::VerifyStoreResponse>* NewVerification(
    const Backend* backend, const absl::Status& admitted, const v1::VerifyStoreRequest& request);

}  // namespace assay::api

#endif  // SERVER_API_VERIFY_STREAM_H_
