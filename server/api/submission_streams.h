// The server streams of SubmissionService: events of the log, events of a run, bytes of an
// artifact.

#ifndef SERVER_API_SUBMISSION_STREAMS_H_
#define SERVER_API_SUBMISSION_STREAMS_H_

#include <grpcpp/support/server_callback.h>

#include "absl/strings/string_view.h"

#include "assay/v1/submission_service.pb.h"

#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

// As the table of permissions names them.
inline constexpr absl::string_view kWatchEvents = "assay.v1.SubmissionService/WatchEvents";
inline constexpr absl::string_view kWatchRunEvents = "assay.v1.SubmissionService/WatchRunEvents";
inline constexpr absl::string_view kDownload = "assay.v1.SubmissionService/DownloadArtifact";

// Each answers one call of an admitted caller and deletes itself when the call is over. `backend`
// must outlive it.
grpc::ServerWriteReactor<v1::Event>* NewEventWatch(const Backend* backend,
                                                   const auth::Identity& identity,
                                                   const v1::WatchEventsRequest& request);
grpc::ServerWriteReactor<v1::RunEvent>* NewRunEventWatch(const Backend* backend,
                                                         const auth::Identity& identity,
                                                         const v1::WatchRunEventsRequest& request);
grpc::ServerWriteReactor<v1::ArtifactChunk>* NewDownload(
    const Backend* backend, const auth::Identity& identity,
    const v1::DownloadArtifactRequest& request);

}  // namespace assay::api

#endif  // SERVER_API_SUBMISSION_STREAMS_H_
