#include "worker/data/archive_staging.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "common/dataset/shards.h"
#include "common/mutex.h"
#include "common/status.h"
#include "worker/data/file_copy.h"
#include "worker/data/file_times.h"
#include "worker/data/placing.h"

namespace assay::data {
namespace {

constexpr int kThreadsMax = 64;

// An archive of a job.
struct Source {
  int64_t number = 0;
  std::string path;
};

// One job under way.
class Extraction {
 public:
  Extraction(const dataset::Manifest& manifest, const StagingJob& job, const Clock* clock,
             dataset::ProgressCallback progress)
      : job_(job),
        clock_(clock),
        placing_(job),
        meter_(std::ssize(job.files), std::move(progress)) {
    for (const dataset::ManifestFile& file : manifest.files)
      members_.emplace(file.path, Member{.bytes = file.bytes});
    for (const FileToStage& file : job.files)
      members_.at(file.name).wanted = &file;
  }

  // Damage is read once more: then it is the storage's.
  absl::Status Extract(const Source& source, CopyBuffer* buffer) {
    absl::Status status = ExtractOnce(source, buffer);
    if (!absl::IsDataLoss(status)) return status;
    ++retries_;
    Forget(source);
    return ExtractOnce(source, buffer);
  }

  absl::Status Finish() {
    RETURN_IF_ERROR(placing_.Finish());
    MutexLock lock(&mutex_);
    for (const FileToStage& file : job_.files)
      if (members_.at(file.name).seen_in < 0)
        return absl::NotFoundError(absl::StrCat(file.name, " is in none of the archives in ",
                                                job_.source_dir, ": make them anew"));
    return absl::OkStatus();
  }

  Staged Result(absl::Duration elapsed, int threads) {
    const dataset::Progress total = meter_.total();
    return {.files = total.files,
            .bytes = total.bytes,
            .elapsed = elapsed,
            .file_p99 = times_.P99(),
            .retries = retries_,
            .window = threads};
  }

 private:
  struct Member {
    int64_t bytes = 0;
    const FileToStage* wanted = nullptr;  // null: nobody asks for it, or it is written
    int64_t seen_in = -1;                 // the number of the archive
  };

  absl::Status ExtractOnce(const Source& source, CopyBuffer* buffer) {
    ASSIGN_OR_RETURN(dataset::ShardReader reader, dataset::ShardReader::Open(source.path));
    absl::Status status = ExtractMembers(source, &reader, buffer);
    reader.GiveUpPages();
    return status;
  }

  absl::Status ExtractMembers(const Source& source, dataset::ShardReader* reader,
                              CopyBuffer* buffer) {
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<dataset::ShardMember> member, reader->Next());
      if (!member.has_value()) return absl::OkStatus();
      ASSIGN_OR_RETURN(const FileToStage* const file, Find(*reader, *member, source.number));
      if (file != nullptr) RETURN_IF_ERROR(Write(*file, source.path, reader, buffer));
    }
  }

  // What was seen in it.
  void Forget(const Source& source) {
    MutexLock lock(&mutex_);
    for (auto& [name, member] : members_)
      if (member.seen_in == source.number) member.seen_in = -1;
  }

  // What is to be done with a member; null: it is passed over.
  absl::StatusOr<const FileToStage*> Find(const dataset::ShardReader& reader,
                                          const dataset::ShardMember& member, int64_t archive) {
    MutexLock lock(&mutex_);
    const auto found = members_.find(member.name);
    if (found == members_.end())
      return reader.Refused(member.name, "is not in the dataset's manifest");
    if (member.bytes != found->second.bytes)
      return reader.Refused(member.name,
                            absl::StrCat("has ", member.bytes, " bytes, but the manifest says ",
                                         found->second.bytes));
    if (found->second.seen_in >= 0) return reader.Refused(member.name, "is there twice");
    found->second.seen_in = archive;
    return found->second.wanted;
  }

  absl::Status Write(const FileToStage& file, const std::string& path, dataset::ShardReader* reader,
                     CopyBuffer* buffer) {
    const MonoTime begin = clock_->Mono();
    RETURN_IF_ERROR(
        placing_.Write(file, absl::StrCat(path, ": its member \"", file.name, "\""), buffer,
                       [reader](std::span<char> memory) { return reader->Read(memory); }));
    times_.Add(clock_->Mono() - begin);
    meter_.AddFile(file.bytes);
    MutexLock lock(&mutex_);
    members_.at(file.name).wanted = nullptr;
    return absl::OkStatus();
  }

  const StagingJob& job_;
  const Clock* const clock_;
  Placing placing_;
  dataset::ProgressMeter meter_;
  FileTimes times_;
  std::atomic<int64_t> retries_ = 0;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Member> members_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<Staged> StageArchives(const std::vector<std::string>& archives,
                                     const dataset::Manifest& manifest, const StagingJob& job,
                                     const Clock* clock, dataset::ProgressCallback progress) {
  RETURN_IF_ERROR(MakeFolders(job));
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = std::clamp(processors / job.ranks_on_node, 1, kThreadsMax);
  std::vector<CopyBuffer> buffers(static_cast<size_t>(threads));
  Extraction extraction(manifest, job, clock, std::move(progress));
  const MonoTime begin = clock->Mono();
  if (!job.files.empty())
    RETURN_IF_ERROR(
        dataset::ForEachIndex(std::ssize(archives), threads, [&](int thread, int64_t i) {
          return extraction.Extract(
              {i, dataset::ShardPath(job.source_dir, archives[static_cast<size_t>(i)])},
              &buffers[static_cast<size_t>(thread)]);
        }));
  RETURN_IF_ERROR(extraction.Finish());
  return extraction.Result(clock->Mono() - begin, threads);
}

}  // namespace assay::data
