#include "worker/data/staging.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/data/copy_window.h"
#include "worker/data/file_copy.h"
#include "worker/data/file_times.h"
#include "worker/data/placing.h"

namespace assay::data {
namespace {

// Files in flight on a node.
constexpr int kWindowFirst = 8;
constexpr int kWindowMax = 128;
// What opening and naming a file is worth in bytes when rates of different windows are compared.
constexpr int64_t kFileWork = int64_t{64} << 10;
constexpr double kGB = 1e9;

// One job under way.
class Stager {
 public:
  Stager(const StagingJob& job, const Clock* clock, dataset::ProgressCallback progress)
      : job_(job),
        clock_(clock),
        window_max_(std::max(kWindowMax / job.ranks_on_node, 1)),
        window_(std::max(kWindowFirst / job.ranks_on_node, 1), window_max_, clock),
        buffers_(static_cast<size_t>(window_max_)),
        meter_(std::ssize(job.files), std::move(progress)),
        placing_(job) {}

  absl::StatusOr<Staged> Run() {
    const MonoTime begin = clock_->Mono();
    // Those that have no place in the window wait for one.
    absl::Status status =
        dataset::ForEachIndex(std::ssize(job_.files), window_max_,
                              [this](int, int64_t i) { return InWindow(static_cast<size_t>(i)); });
    if (status.ok()) status = placing_.Finish();
    const dataset::Progress total = meter_.total();
    if (!status.ok())
      return Annotate(status, absl::StrCat("staging stopped after ", total.files, " of ",
                                           job_.files.size(), " files"));
    return Staged{.files = total.files,
                  .bytes = total.bytes,
                  .elapsed = clock_->Mono() - begin,
                  .file_p99 = times_.P99(),
                  .retries = retries_,
                  .window = window_.size()};
  }

 private:
  absl::Status InWindow(size_t index) {
    const std::optional<int> place = window_.Enter();
    if (!place.has_value()) return absl::OkStatus();  // another file has failed
    absl::Status status = Stage(job_.files[index], &buffers_[static_cast<size_t>(*place)]);
    window_.Leave(*place);
    if (!status.ok()) window_.Close();
    return status;
  }

  absl::Status Stage(const FileToStage& file, CopyBuffer* buffer) {
    const MonoTime begin = clock_->Mono();
    const std::string final_path = JoinPath(job_.target_dir, file.name);
    const std::string temporary_path = absl::StrCat(final_path, ".staging");
    absl::StatusOr<CopiedFile> copy = Copy(file, temporary_path, buffer);
    if (!copy.ok()) {
      unlink(temporary_path.c_str());
      return copy.status();
    }
    times_.Add(clock_->Mono() - begin);
    meter_.AddFile(copy->bytes);
    window_.Advance(kFileWork);
    return placing_.Add({*std::move(copy), temporary_path, final_path, file});
  }

  // Content that is not what the manifest says is read once more: then it is the storage's.
  absl::StatusOr<CopiedFile> Copy(const FileToStage& file, const std::string& target,
                                  CopyBuffer* buffer) {
    const std::string source = JoinPath(job_.source_dir, file.name);
    for (bool is_retry = false;; is_retry = true) {
      Sha256 digest;
      const FileCopy copy = {.source_path = source,
                             .target_path = target,
                             .digest = file.sha256.empty() ? nullptr : &digest};
      ASSIGN_OR_RETURN(CopiedFile copied,
                       CopyFile(copy, buffer, [this](int64_t bytes) { window_.Advance(bytes); }));
      if (file.bytes >= 0 && copied.bytes != file.bytes)
        return absl::DataLossError(absl::StrCat(source, " has ", copied.bytes,
                                                " bytes, but the manifest says ", file.bytes,
                                                ": verify the dataset"));
      const std::string found = file.sha256.empty() ? "" : digest.HexDigest();
      if (found == file.sha256) return copied;
      if (is_retry)
        return absl::DataLossError(absl::StrCat(source, " has the SHA-256 ", found,
                                                ", but the manifest says ", file.sha256,
                                                "; it was read twice: verify the dataset"));
      ++retries_;
    }
  }

  const StagingJob& job_;
  const Clock* const clock_;
  const int window_max_;
  CopyWindow window_;
  std::vector<CopyBuffer> buffers_;  // of the window's places
  dataset::ProgressMeter meter_;
  FileTimes times_;
  std::atomic<int64_t> retries_ = 0;
  Placing placing_;
};

absl::StatusOr<int64_t> SizeOf(const StagingJob& job, const FileToStage& file) {
  if (file.bytes >= 0) return file.bytes;
  return FileSize(JoinPath(job.source_dir, file.name));
}

bool IsSameFile(const std::string& one, const std::string& other, int64_t bytes) {
  struct stat a {};
  struct stat b {};
  return stat(one.c_str(), &a) == 0 && stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino && S_ISREG(a.st_mode) && (bytes < 0 || a.st_size == bytes);
}

}  // namespace

CachedFiles TakeCached(const std::string& cache_dir, StagingJob* job) {
  CachedFiles cached;
  std::erase_if(job->files, [&](const FileToStage& file) {
    const std::string target = JoinPath(job->target_dir, file.name);
    if (!IsSameFile(target, JoinPath(cache_dir, file.name), file.bytes)) return false;
    ++cached.files;
    cached.bytes += std::max<int64_t>(file.bytes, 0);
    return true;
  });
  return cached;
}

absl::Status CheckStagingSpace(const StagingJob& job) {
  RETURN_IF_ERROR(MakeFolders(job));
  struct statvfs info {};
  if (statvfs(job.target_dir.c_str(), &info) != 0)
    return job.files.empty() ? absl::OkStatus()
                             : CopyError("cannot ask for the space of", job.target_dir);
  const auto block = static_cast<int64_t>(info.f_frsize);
  std::atomic<int64_t> blocks = 0;
  RETURN_IF_ERROR(dataset::ForEachIndex(
      std::ssize(job.files), std::max(kWindowMax / job.ranks_on_node, 1),
      [&](int, int64_t i) -> absl::Status {
        ASSIGN_OR_RETURN(const int64_t bytes, SizeOf(job, job.files[static_cast<size_t>(i)]));
        blocks += (bytes + block - 1) / block;
        return absl::OkStatus();
      }));
  const int64_t needed = blocks * job.ranks_on_node;
  if (needed <= static_cast<int64_t>(info.f_bavail)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "staging takes %.3f GB of %s, where %.3f GB are free: free space there, stage to a larger "
      "disk, or use more nodes",
      static_cast<double>(needed * block) / kGB, job.target_dir,
      static_cast<double>(info.f_bavail) * static_cast<double>(block) / kGB));
}

absl::StatusOr<Staged> StageFiles(const StagingJob& job, const Clock* clock,
                                  dataset::ProgressCallback progress) {
  RETURN_IF_ERROR(MakeFolders(job));
  return Stager(job, clock, std::move(progress)).Run();
}

}  // namespace assay::data
