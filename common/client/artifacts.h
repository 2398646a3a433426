// What runs left behind: logs and other files, by their digest.

#ifndef COMMON_CLIENT_ARTIFACTS_H_
#define COMMON_CLIENT_ARTIFACTS_H_

#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"

namespace assay::client {

// The bytes of an artifact, all in memory. DATA_LOSS if what arrived has not its digest; else the
// coordinator's error. Blocks, for ten minutes at most. Thread-safe.
absl::StatusOr<std::string> DownloadArtifact(const Client& client, const v1::ArtifactRef& artifact);

}  // namespace assay::client

#endif  // COMMON_CLIENT_ARTIFACTS_H_
