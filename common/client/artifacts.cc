#include "common/client/artifacts.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/sha256.h"

namespace assay::client {
namespace {

constexpr absl::Duration kDownloadTimeout = absl::Minutes(10);
constexpr size_t kPieceBytes = 64 << 10;

absl::StatusOr<v1::Submission> TrySubmitWithSource(const Client& client,
                                                   const v1::CreateSubmissionRequest& request,
                                                   const std::string& source) {
  grpc::ClientContext context;
  PrepareCall(client.endpoint(), kDownloadTimeout, &context);
  v1::Submission made;
  const auto writer = client.stubs().submissions->CreateSubmissionWithSource(&context, &made);
  v1::CreateSubmissionWithSourceRequest message;
  *message.mutable_create() = request;
  bool is_heard = writer->Write(message);
  for (size_t at = 0; is_heard && at < source.size(); at += kPieceBytes) {
    message.set_source(source.substr(at, kPieceBytes));
    is_heard = writer->Write(message);
  }
  message.Clear();  // the last one says that nothing is missing
  if (is_heard && writer->Write(message)) writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) return client.Explain(FromGrpc(status));
  return made;
}

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

absl::StatusOr<v1::Submission> SubmitWithSource(const Client& client,
                                                const v1::CreateSubmissionRequest& request,
                                                const std::string& source) {
  const absl::Time deadline = absl::Now() + Client::kRetryFor;
  while (true) {
    absl::StatusOr<v1::Submission> made = TrySubmitWithSource(client, request, source);
    if (!absl::IsUnavailable(made.status()) || !client.WaitUntilReachable(deadline)) return made;
  }
}

}  // namespace assay::client
