#include "common/client/artifacts.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/sha256.h"

namespace assay::client {
namespace {

constexpr absl::Duration kDownloadTimeout = absl::Minutes(10);

}  // namespace

absl::StatusOr<std::string> DownloadArtifact(const client::Client& client,
                                             const v1::ArtifactRef& artifact) {
  grpc::ClientContext context;
  PrepareCall(client.endpoint(), kDownloadTimeout, &context);
  v1::DownloadArtifactRequest request;
  request.set_sha256(artifact.sha256());
  const auto reader = client.stubs().submissions->DownloadArtifact(&context, request);
  std::string bytes;
  v1::ArtifactChunk chunk;
  while (reader->Read(&chunk))
    bytes += chunk.data();
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return client.Explain(FromGrpc(status));
  if (Sha256Hex(bytes) != artifact.sha256())
    return absl::DataLossError(absl::StrCat(artifact.file_name(), ": what arrived has not the ",
                                            "digest ", artifact.sha256(), "; try again"));
  return bytes;
}

}  // namespace assay::client
