#include "worker/data/placing.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::data {
namespace {

// Of cold copies that one syncfs brings to the device: what they hold open is two such windows.
constexpr size_t kBatchFiles = 128;

// One at a time, to the device and out of memory if the job is cold. Those behind an error are
// removed.
absl::Status PutInPlace(std::vector<WholeCopy> copies, const StagingJob& job) {
  const bool is_cold = job.is_cold;
  absl::Status status;
  std::vector<FileToStage> placed;
  if (is_cold && !copies.empty() && syncfs(copies.front().copy.target.get()) != 0)
    status = CopyError("cannot sync the file system of", copies.front().temporary_path);
  for (const WholeCopy& copy : copies) {
    // Only now: pages that are not written yet cannot be given up.
    if (status.ok() && is_cold) {
      errno = posix_fadvise(copy.copy.target.get(), 0, 0, POSIX_FADV_DONTNEED);
      if (errno != 0) status = CopyError("cannot give up the pages of", copy.temporary_path);
    }
    if (status.ok() && rename(copy.temporary_path.c_str(), copy.final_path.c_str()) != 0)
      status = CopyError("cannot rename to", copy.final_path);
    if (!status.ok()) unlink(copy.temporary_path.c_str());  // gives the space back
    if (status.ok() && job.placed != nullptr) placed.push_back(copy.file);
  }
  if (!placed.empty()) status.Update(job.placed(placed));
  return status;
}

absl::StatusOr<CopiedFile> WriteWhole(
    const FileToStage& file, absl::string_view from, const std::string& target, CopyBuffer* buffer,
    absl::FunctionRef<absl::StatusOr<size_t>(std::span<char> memory)> next) {
  Sha256 digest;
  ASSIGN_OR_RETURN(CopiedFile copy, WritePieces(target, file.bytes, buffer,
                                                file.sha256.empty() ? nullptr : &digest, next));
  if (copy.bytes != file.bytes)
    return absl::DataLossError(
        absl::StrCat(from, " ends after ", copy.bytes, " of ", file.bytes, " bytes"));
  const std::string found = file.sha256.empty() ? "" : digest.HexDigest();
  if (found != file.sha256)
    return absl::DataLossError(
        absl::StrCat(from, " has the SHA-256 ", found, ", but the manifest says ", file.sha256));
  return copy;
}

}  // namespace

absl::Status MakeFolders(const StagingJob& job) {
  std::set<std::string> folders;
  for (const FileToStage& file : job.files)
    folders.insert(std::filesystem::path(file.name).parent_path().string());
  for (const std::string& folder : folders)
    RETURN_IF_ERROR(MakeDirectories(JoinPath(job.target_dir, folder)));
  return absl::OkStatus();
}

Placing::~Placing() {
  for (const WholeCopy& copy : TakeBatch(0))
    unlink(copy.temporary_path.c_str());
}

absl::Status Placing::Write(
    const FileToStage& file, absl::string_view from, CopyBuffer* buffer,
    absl::FunctionRef<absl::StatusOr<size_t>(std::span<char> memory)> next) {
  const std::string final_path = JoinPath(job_.target_dir, file.name);
  const std::string temporary_path = absl::StrCat(final_path, ".staging");
  absl::StatusOr<CopiedFile> copy = WriteWhole(file, from, temporary_path, buffer, next);
  if (!copy.ok()) {
    unlink(temporary_path.c_str());
    return copy.status();
  }
  return Add({*std::move(copy), temporary_path, final_path, file});
}

absl::Status Placing::Add(WholeCopy copy) {
  {
    MutexLock lock(&mutex_);
    batch_.push_back(std::move(copy));
  }
  return PutInPlace(TakeBatch(job_.is_cold ? kBatchFiles : 1), job_);
}

absl::Status Placing::Finish() {
  return PutInPlace(TakeBatch(0), job_);
}

// None unless there are `least`.
std::vector<WholeCopy> Placing::TakeBatch(size_t least) {
  MutexLock lock(&mutex_);
  if (batch_.size() < least) return {};
  return std::exchange(batch_, {});
}

}  // namespace assay::data
