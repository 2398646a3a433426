// What runs left behind, logs and other files, by their digest; and the sources that submissions
// bring.

#ifndef COMMON_CLIENT_ARTIFACTS_H_
#define COMMON_CLIENT_ARTIFACTS_H_

#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"
#include "assay/v1/submission_service.pb.h"

#include "common/client/client.h"

namespace assay::client {

// The bytes of an artifact, all in memory. DATA_LOSS if what arrived has not its digest; else the
// coordinator's error. Blocks, for ten minutes at most. Thread-safe.
absl::StatusOr<std::string> DownloadArtifact(const Client& client, const v1::ArtifactRef& artifact);

// Creates a submission together with the source of its program, whose digest and size the request
// announces. While the coordinator is away it is tried again, as Client::CallRetrying does. Blocks.
absl::StatusOr<v1::Submission> SubmitWithSource(const Client& client,
                                                const v1::CreateSubmissionRequest& request,
                                                const std::string& source);

}  // namespace assay::client

#endif  // COMMON_CLIENT_ARTIFACTS_H_
