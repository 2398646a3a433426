#include "worker/agent/source_fetcher.h"

#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/log.h"
#include "common/rpc/status_grpc.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/agent/back_off.h"

namespace assay::agent {
namespace {

constexpr absl::Duration kDownloadTimeout = absl::Minutes(10);

// Asking again changes nothing.
bool IsFinal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace

SourceFetcher::SourceFetcher(v1::WorkerService::StubInterface* stub, Endpoint endpoint,
                             const Clock* clock)
    : stub_(stub), endpoint_(std::move(endpoint)), clock_(clock), thread_([this] { Loop(); }) {}

SourceFetcher::~SourceFetcher() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    changed_.NotifyAll();
  }
  slot_.Close();
  thread_.join();
}

void SourceFetcher::Fetch(const RunKey& key, const RunDirectory& directory,
                          const v1::SourceArchive& source) {
  MutexLock lock(&mutex_);
  orders_.try_emplace(key, Order{directory, source});
  changed_.NotifyAll();
}

void SourceFetcher::Drop(const RunKey& key) {
  MutexLock lock(&mutex_);
  orders_.erase(key);
}

absl::Status SourceFetcher::Download(const RunKey& key, const Order& order) {
  const std::string part = absl::StrCat(order.directory.SourcePath(), ".part");
  const UniqueFd fd(
      open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", part));
  grpc::ClientContext context;
  PrepareCall(endpoint_, kDownloadTimeout, &context);
  slot_.Enter(&context);
  const auto leave = absl::MakeCleanup([this] { slot_.Leave(); });
  v1::DownloadSourceRequest request;
  request.set_run(key.run);
  request.set_generation(key.generation);
  const auto reader = stub_->DownloadSource(&context, request);
  Sha256 digest;
  absl::Status written;
  int64_t left = order.source.size_bytes();
  v1::ArtifactChunk chunk;
  while (written.ok() && reader->Read(&chunk)) {
    left -= static_cast<int64_t>(chunk.data().size());
    digest.Add(chunk.data());
    written = left < 0 ? absl::DataLossError("the source is longer than was announced")
                       : WriteAll(fd.get(), chunk.data());
  }
  if (!written.ok()) context.TryCancel();
  const absl::Status status = FromGrpc(reader->Finish());
  RETURN_IF_ERROR(written);
  RETURN_IF_ERROR(Annotate(status, "the source of the program"));
  if (left != 0 || digest.HexDigest() != order.source.sha256())
    return absl::DataLossError("what came has not the digest of the program's source");
  return RenameSynced(part, order.directory.SourcePath());
}

bool SourceFetcher::WaitAfter(int failure_count) {
  const MonoTime end = clock_->Mono() + BackOff(failure_count, RandomShare());
  MutexLock lock(&mutex_);
  while (!is_stopping_ && clock_->Mono() < end)
    changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(end - clock_->Mono()));
  return !is_stopping_;
}

void SourceFetcher::Loop() {
  int failure_count = 0;
  while (true) {
    std::optional<std::pair<RunKey, Order>> task;
    {
      MutexLock lock(&mutex_);
      while (!is_stopping_ && orders_.empty())
        changed_.Wait(&mutex_);
      if (is_stopping_) return;
      task = *orders_.begin();
    }
    const auto& [key, order] = *task;
    absl::Status status = Download(key, order);
    if (!status.ok() && !IsFinal(status)) {
      if (++failure_count == 1) LOG(WARNING) << "run=" << key.run << " source: " << status;
      if (!WaitAfter(failure_count)) return;
      continue;
    }
    failure_count = 0;
    if (!status.ok()) {
      LOG(ERROR) << "run=" << key.run << " source: " << status;
      status = WriteFileAtomic(order.directory.SourceErrorPath(), status.message(), kPrivateFile);
    }
    if (!status.ok()) LOG(ERROR) << "run=" << key.run << " " << status;
    Drop(key);
  }
}

}  // namespace assay::agent
