#include "worker/agent/uploader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/rpc/status_grpc.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::agent {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr absl::Duration kTimeoutBase = absl::Minutes(1);
constexpr int64_t kBytesPerSecondMin = 1 << 20;  // a slower link has trouble of its own

using Writer = grpc::ClientWriterInterface<v1::UploadArtifactRequest>;

// False if the coordinator stopped listening: Finish then says why.
absl::StatusOr<bool> WritePieces(const std::string& path, int64_t byte_count,
                                 v1::UploadArtifactRequest request, Writer* writer) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path, Links::kRefuse));
  std::string buffer(kChunkBytes, '\0');
  bool is_first = true;
  for (int64_t left = byte_count; left > 0 || is_first; is_first = false) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(left, kChunkBytes));
    const ssize_t n = read(fd.get(), buffer.data(), wanted);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (n == 0 && left > 0) return absl::DataLossError(absl::StrCat(path, " has become shorter"));
    request.set_data(buffer.data(), static_cast<size_t>(n));
    if (!writer->Write(request)) return false;
    request.clear_header();
    left -= n;
  }
  return true;
}

}  // namespace

absl::StatusOr<UploadedFile> UploadFile(v1::WorkerService::StubInterface* stub,
                                        const Endpoint& endpoint, const RunKey& key,
                                        const ArtifactFile& file, CallSlot* slot) {
  UploadedFile result{.file_name = file.name};
  ASSIGN_OR_RETURN(result.size_bytes, FileSize(file.path));
  ASSIGN_OR_RETURN(result.sha256, Sha256HexOfFile(file.path));
  v1::UploadArtifactRequest first;
  first.mutable_header()->set_run(key.run);
  first.mutable_header()->set_generation(key.generation);
  first.mutable_header()->set_file_name(file.name);
  first.mutable_header()->set_sha256(result.sha256);
  first.mutable_header()->set_size_bytes(result.size_bytes);

  grpc::ClientContext context;
  PrepareCall(endpoint, kTimeoutBase + absl::Seconds(result.size_bytes / kBytesPerSecondMin),
              &context);
  slot->Enter(&context);
  const auto leave = absl::MakeCleanup([slot] { slot->Leave(); });
  v1::UploadArtifactResponse response;
  const std::unique_ptr<Writer> writer(stub->UploadArtifact(&context, &response));
  const absl::StatusOr<bool> written =
      WritePieces(file.path, result.size_bytes, std::move(first), writer.get());
  if (!written.ok()) context.TryCancel();
  if (written.ok() && *written) writer->WritesDone();
  const absl::Status status = FromGrpc(writer->Finish());
  RETURN_IF_ERROR(written.status());
  RETURN_IF_ERROR(Annotate(status, absl::StrCat("upload of ", file.name)));
  return result;
}

}  // namespace assay::agent
