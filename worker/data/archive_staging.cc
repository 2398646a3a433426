#include "worker/data/archive_staging.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/mutex.h"
#include "common/status.h"
#include "worker/data/file_copy.h"
#include "worker/data/placing.h"

namespace assay::data {
namespace {

constexpr absl::string_view kSuffixes[] = {".tar", ".tar.gz", ".tgz", ".tar.zst"};
constexpr char kManifestMember[] = "manifest.json";
constexpr size_t kReadBytes = size_t{1} << 20;
constexpr int kThreadsMax = 64;

using Archive = std::unique_ptr<archive, int (*)(archive*)>;

absl::Status Damaged(archive* from, const std::string& path) {
  const char* const why = archive_error_string(from);
  return absl::DataLossError(
      absl::StrCat(path, " cannot be read: ", why == nullptr ? "it is damaged" : why));
}

// `file` is at its beginning.
absl::StatusOr<Archive> OpenArchive(const std::string& path, const UniqueFd& file) {
  Archive from(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(from.get());
  // ARCHIVE_WARN: by a program outside, whichever that is.
  if (archive_read_support_filter_gzip(from.get()) != ARCHIVE_OK ||
      archive_read_support_filter_zstd(from.get()) != ARCHIVE_OK)
    return absl::FailedPreconditionError(
        "this node's libarchive cannot decompress gzip and zstd itself");
  if (archive_read_open_fd(from.get(), file.get(), kReadBytes) != ARCHIVE_OK)
    return Damaged(from.get(), path);
  return from;
}

// What speaks against a member whatever the manifest says; empty: nothing.
std::string WhyStrange(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return "is a hard link";
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      break;
    case AE_IFLNK:
      return "is a symbolic link";
    case AE_IFDIR:
      return archive_entry_size(entry) == 0 ? "" : "is a directory with content";
    default:
      return "is a device, a pipe or a socket";
  }
  if (archive_entry_sparse_count(entry) > 0) return "is sparse";
  return "";
}

// One job under way.
class Extraction {
 public:
  Extraction(const dataset::Manifest& manifest, const StagingJob& job,
             dataset::ProgressCallback progress)
      : job_(job), placing_(job), meter_(std::ssize(job.files), std::move(progress)) {
    for (const dataset::ManifestFile& file : manifest.files)
      members_.emplace(file.path, Member{.bytes = file.bytes});
    for (const FileToStage& file : job.files)
      members_.at(file.name).wanted = &file;
  }

  absl::Status Extract(const std::string& path, CopyBuffer* buffer) {
    ASSIGN_OR_RETURN(const UniqueFd file, OpenRegularFile(path));
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    ASSIGN_OR_RETURN(const Archive from, OpenArchive(path, file));
    for (;;) {
      archive_entry* entry = nullptr;
      const int next = archive_read_next_header(from.get(), &entry);
      if (next == ARCHIVE_EOF) break;
      if (next != ARCHIVE_OK) return Damaged(from.get(), path);
      RETURN_IF_ERROR(ExtractMember(from.get(), entry, path, buffer));
    }
    posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    return absl::OkStatus();
  }

  absl::Status Finish() {
    RETURN_IF_ERROR(placing_.Finish());
    for (const FileToStage& file : job_.files)
      if (!IsSeen(file.name))
        return absl::NotFoundError(absl::StrCat(file.name, " is in none of the archives in ",
                                                job_.source_dir, ": make them anew"));
    return absl::OkStatus();
  }

  dataset::Progress total() const { return meter_.total(); }

 private:
  struct Member {
    int64_t bytes = 0;
    const FileToStage* wanted = nullptr;  // null: it is there already
    bool is_seen = false;
  };

  bool IsSeen(const std::string& name) {
    MutexLock lock(&mutex_);
    return members_.at(name).is_seen;
  }

  // The manifest's member that `entry` is; null: a directory, or the manifest itself.
  absl::StatusOr<const FileToStage*> Find(archive_entry* entry, const std::string& path) {
    const char* const said = archive_entry_pathname(entry);
    const absl::string_view name =
        absl::StripPrefix(absl::NullSafeStringView(said), absl::string_view("./"));
    const auto refused = [&](absl::string_view why) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": its member \"", name, "\" ", why, ": make the archive anew"));
    };
    if (const std::string why = WhyStrange(entry); !why.empty()) return refused(why);
    if (archive_entry_filetype(entry) == AE_IFDIR) return nullptr;
    const int64_t bytes = archive_entry_size(entry);
    if (name == kManifestMember && bytes <= dataset::kManifestBytesMax) return nullptr;
    MutexLock lock(&mutex_);
    const auto found = members_.find(name);
    if (found == members_.end()) return refused("is not in the dataset's manifest");
    if (bytes != found->second.bytes)
      return refused(
          absl::StrCat("has ", bytes, " bytes, but the manifest says ", found->second.bytes));
    if (std::exchange(found->second.is_seen, true)) return refused("is there twice");
    return found->second.wanted;
  }

  absl::Status ExtractMember(archive* from, archive_entry* entry, const std::string& path,
                             CopyBuffer* buffer) {
    ASSIGN_OR_RETURN(const FileToStage* const file, Find(entry, path));
    if (file == nullptr) return absl::OkStatus();  // the next header is found behind its content
    const auto next = [&](std::span<char> memory) -> absl::StatusOr<size_t> {
      const la_ssize_t n = archive_read_data(from, memory.data(), memory.size());
      if (n < 0) return Damaged(from, path);
      return static_cast<size_t>(n);
    };
    RETURN_IF_ERROR(placing_.Write(*file, absl::StrCat(path, ": its member \"", file->name, "\""),
                                   buffer, next));
    meter_.AddFile(file->bytes);
    return absl::OkStatus();
  }

  const StagingJob& job_;
  Placing placing_;
  dataset::ProgressMeter meter_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Member> members_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ListShards(const std::string& dataset_dir) {
  const std::string folder = JoinPath(dataset_dir, kShardFolder);
  std::vector<std::string> shards;
  if (!FileExists(folder)) return shards;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names)
    if (std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                    [&](absl::string_view suffix) { return absl::EndsWith(name, suffix); }))
      shards.push_back(JoinPath(folder, name));
  return shards;
}

absl::StatusOr<Staged> StageArchives(const std::vector<std::string>& archives,
                                     const dataset::Manifest& manifest, const StagingJob& job,
                                     const Clock* clock, dataset::ProgressCallback progress) {
  RETURN_IF_ERROR(MakeFolders(job));
  const int threads =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kThreadsMax);
  std::vector<CopyBuffer> buffers(static_cast<size_t>(threads));
  Extraction extraction(manifest, job, std::move(progress));
  const MonoTime begin = clock->Mono();
  if (!job.files.empty())
    RETURN_IF_ERROR(
        dataset::ForEachIndex(std::ssize(archives), threads, [&](int thread, int64_t i) {
          return extraction.Extract(archives[static_cast<size_t>(i)],
                                    &buffers[static_cast<size_t>(thread)]);
        }));
  RETURN_IF_ERROR(extraction.Finish());
  const dataset::Progress total = extraction.total();
  return Staged{.files = total.files,
                .bytes = total.bytes,
                .elapsed = clock->Mono() - begin,
                .window = threads};
}

}  // namespace assay::data
