#include "worker/cache/node_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "common/dataset/manifest.h"
#include "common/dataset/shards.h"
#include "common/log.h"
#include "common/secret.h"
#include "common/status.h"
#include "worker/data/archive_staging.h"

namespace assay::cache {
namespace {

constexpr size_t kDigestDigits = 64;
constexpr char kEvictedPrefix[] = ".evicted-";
constexpr double kGB = 1e9;
constexpr mode_t kReadableFile = 0640;
constexpr mode_t kReadableDirectory = 0750;

bool IsDigest(absl::string_view name) {
  return name.size() == kDigestDigits && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c)) &&
                  !absl::ascii_isupper(static_cast<unsigned char>(c));
         });
}

absl::Status CheckDigest(absl::string_view digest) {
  if (IsDigest(digest)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", digest, "\" is no digest of a dataset"));
}

std::string JournalPath(const std::string& folder) {
  return JoinPath(folder, "journal");
}
std::string UsedPath(const std::string& folder) {
  return JoinPath(folder, "used");
}
std::string PinnedPath(const std::string& folder) {
  return JoinPath(folder, "pinned");
}

absl::Status Touch(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (fd.is_open() && futimens(fd.get(), nullptr) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot touch ", path));
}

absl::StatusOr<UniqueFd> LockFile(const std::string& path, int how) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  while (flock(fd.get(), how) != 0)
    if (errno != EINTR) return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
  return fd;
}

double GB(int64_t bytes) {
  return static_cast<double>(bytes) / kGB;
}

std::string NameOf(const CachedDataset& dataset) {
  return absl::StrCat(dataset.name, " (", dataset.digest.substr(0, 12), ")");
}

// What has to be copied; the rest is whole.
std::vector<data::FileToStage> Missing(const dataset::Manifest& manifest, const Journal& journal,
                                       const std::string& files_path, Filled* filled) {
  std::vector<data::FileToStage> missing;
  for (const dataset::ManifestFile& file : manifest.files) {
    const auto found = journal.files.find(file.path);
    bool is_whole = found != journal.files.end() && found->second.sha256 == file.sha256;
    if (is_whole) {
      const absl::StatusOr<JournalFile> now = LookAt(JoinPath(files_path, file.path));
      is_whole = now.ok() && now->bytes == file.bytes && now->bytes == found->second.bytes &&
                 now->mtime_ns == found->second.mtime_ns;
    }
    if (is_whole) {
      ++filled->files_there;
      filled->bytes_there += file.bytes;
    } else {
      missing.push_back({.name = file.path, .bytes = file.bytes, .sha256 = file.sha256});
    }
  }
  return missing;
}

// Of the archives those that have any of the files, by the index; all where there is none.
std::vector<std::string> ShardsWith(const std::vector<data::FileToStage>& files,
                                    const std::string& source, const std::string& digest,
                                    std::vector<std::string> shards) {
  if (shards.empty()) return shards;
  const absl::StatusOr<std::vector<dataset::Shard>> index = dataset::LoadShardIndex(source, digest);
  if (!index.ok()) {
    LOG(INFO) << "node cache: all archives are read: " << index.status();
    return shards;
  }
  std::set<absl::string_view> wanted;
  for (const data::FileToStage& file : files)
    wanted.insert(file.name);
  shards.clear();
  for (const dataset::Shard& shard : *index)
    if (std::any_of(shard.files.begin(), shard.files.end(),
                    [&](const std::string& name) { return wanted.count(name) > 0; }))
      shards.push_back(shard.name);
  return shards;
}

// `over`: bytes that would have to go beside all that may.
absl::Status NoRoom(const std::vector<CachedDataset>& stay, int64_t over, int64_t needed,
                    int64_t quota, int64_t disk_free) {
  std::vector<std::string> names;
  for (const CachedDataset& dataset : stay) {
    if (!dataset.is_pinned) over -= dataset.bytes;
    names.push_back(absl::StrFormat("%s %.3f GB%s%s", NameOf(dataset), GB(dataset.bytes),
                                    dataset.is_pinned ? ", pinned" : "",
                                    dataset.is_held ? ", in use" : ""));
  }
  const std::string problem = absl::StrFormat(
      "the node cache has no room for %.3f GB more: its quota is %.3f GB, %.3f GB are free on its "
      "disk, and what it cannot evict is %s: unpin or evict one, or raise the quota",
      GB(needed), GB(quota), GB(disk_free),
      names.empty() ? std::string("nothing") : absl::StrJoin(names, "; "));
  if (over <= 0) return absl::AbortedError(problem);
  return absl::ResourceExhaustedError(problem);
}

}  // namespace

std::string NodeCache::FilesPath(const std::string& directory, const std::string& digest) {
  return JoinPath(JoinPath(directory, digest), "files");
}

std::string NodeCache::Folder(const std::string& digest) const {
  return JoinPath(options_.directory, digest);
}

absl::StatusOr<NodeCache> NodeCache::Open(NodeCacheOptions options) {
  if (options.quota_bytes < 1)
    return absl::FailedPreconditionError(
        absl::StrCat("the node cache ", options.directory, " has no quota"));
  if (!FileExists(options.directory))
    RETURN_IF_ERROR(MakeDirectories(options.directory, kPrivateDirectory));
  struct stat info {};
  if (lstat(options.directory.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot stat ", options.directory));
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("the node cache ", options.directory, " is not a directory that this account ",
                     "alone can write: name another, or give it to the agent's account with mode "
                     "0700"));
  NodeCache cache(std::move(options));
  RETURN_IF_ERROR(cache.Share(cache.options_.directory, /*is_directory=*/true));
  cache.RemoveLeftovers();
  return cache;
}

// For the ranks to read, and for nobody else.
absl::Status NodeCache::Share(const std::string& path, bool is_directory) const {
  if (!options_.readers.has_value()) return absl::OkStatus();
  const mode_t mode = is_directory ? kReadableDirectory : kReadableFile;
  if (lchown(path.c_str(), static_cast<uid_t>(-1), *options_.readers) == 0 &&
      chmod(path.c_str(), mode) == 0)
    return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot let ranks read ", path));
}

absl::StatusOr<UniqueFd> NodeCache::LockAll() const {
  return LockFile(JoinPath(options_.directory, "lock"), LOCK_EX);
}

absl::StatusOr<UniqueFd> NodeCache::LockDataset(const std::string& digest, int how) const {
  return LockFile(absl::StrCat(Folder(digest), ".lock"), how | LOCK_NB);
}

void NodeCache::RemoveLeftovers() const {
  const absl::StatusOr<UniqueFd> lock = LockAll();
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(options_.directory);
  if (!lock.ok() || !names.ok()) return;
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, kEvictedPrefix)) continue;
    const absl::Status removed = RemoveTree(JoinPath(options_.directory, name));
    if (!removed.ok()) LOG(WARNING) << removed;
  }
}

// Held by nobody: whoever calls has both locks.
absl::Status NodeCache::Remove(const std::string& digest) const {
  const std::string gone =
      JoinPath(options_.directory, absl::StrCat(kEvictedPrefix, digest, "-", MakeUuid()));
  if (rename(Folder(digest).c_str(), gone.c_str()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", Folder(digest)));
  return RemoveTree(gone);
}

absl::StatusOr<CachedDataset> NodeCache::Describe(const std::string& digest) const {
  const std::string folder = Folder(digest);
  CachedDataset dataset{.digest = digest, .is_pinned = FileExists(PinnedPath(folder))};
  const absl::StatusOr<Journal> journal = LoadJournal(JournalPath(folder));
  if (journal.ok()) {
    dataset.name = journal->name;
    dataset.files = static_cast<int64_t>(journal->files.size());
    dataset.bytes = journal->Bytes();
    dataset.files_total = journal->files_total;
    dataset.bytes_total = journal->bytes_total;
  } else {
    LOG(WARNING) << "node cache: " << journal.status();  // nothing of it counts; it can be evicted
  }
  struct stat info {};
  if (stat(UsedPath(folder).c_str(), &info) == 0)
    dataset.used = absl::TimeFromTimespec(info.st_mtim);
  dataset.is_held = !LockDataset(digest, LOCK_EX).ok();
  // Who fills it will have all of it soon.
  if (dataset.is_held && !LockDataset(digest, LOCK_SH).ok()) dataset.bytes = dataset.bytes_total;
  return dataset;
}

absl::StatusOr<std::vector<CachedDataset>> NodeCache::ListLocked() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(options_.directory));
  std::vector<CachedDataset> datasets;
  for (const std::string& name : names) {
    if (!IsDigest(name)) continue;
    ASSIGN_OR_RETURN(CachedDataset dataset, Describe(name));
    datasets.push_back(std::move(dataset));
  }
  std::stable_sort(datasets.begin(), datasets.end(),
                   [](const CachedDataset& a, const CachedDataset& b) { return a.used < b.used; });
  return datasets;
}

absl::StatusOr<std::vector<CachedDataset>> NodeCache::List() {
  ASSIGN_OR_RETURN(const UniqueFd lock, LockAll());
  return ListLocked();
}

absl::StatusOr<std::string> NodeCache::Find(absl::string_view name) {
  ASSIGN_OR_RETURN(const std::vector<CachedDataset> datasets, List());
  std::vector<std::string> found;
  for (const CachedDataset& dataset : datasets)
    if (dataset.name == name || (!name.empty() && absl::StartsWith(dataset.digest, name)))
      found.push_back(dataset.digest);
  if (found.empty())
    return absl::NotFoundError(absl::StrCat("the node cache has no dataset \"", name, "\""));
  if (found.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("the node cache has ", found.size(),
                                                   " datasets \"", name, "\": give the digest"));
  return found.front();
}

absl::StatusOr<std::vector<std::string>> NodeCache::MakeRoom(const Room& room) const {
  ASSIGN_OR_RETURN(const std::vector<CachedDataset> datasets, ListLocked());
  struct statvfs disk {};
  if (statvfs(options_.directory.c_str(), &disk) != 0)
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot ask for the space of ", options_.directory));
  const auto disk_free = static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
  int64_t used = room.bytes_had;
  std::vector<CachedDataset> may_go;
  std::vector<CachedDataset> stay;
  int64_t may_go_bytes = 0;
  for (const CachedDataset& dataset : datasets) {
    if (dataset.digest == room.digest) continue;
    used += dataset.bytes;
    const bool is_kept = dataset.is_pinned || dataset.is_held;
    (is_kept ? stay : may_go).push_back(dataset);
    if (!is_kept) may_go_bytes += dataset.bytes;
  }
  int64_t over = std::max(used + room.bytes - options_.quota_bytes, room.bytes - disk_free);
  if (over > may_go_bytes)
    return NoRoom(stay, over - may_go_bytes, room.bytes, options_.quota_bytes, disk_free);
  std::vector<std::string> evicted;
  for (const CachedDataset& dataset : may_go) {
    if (over <= 0) break;
    const absl::StatusOr<UniqueFd> lock = LockDataset(dataset.digest, LOCK_EX);
    if (!lock.ok()) continue;
    RETURN_IF_ERROR(Remove(dataset.digest));
    over -= dataset.bytes;
    evicted.push_back(NameOf(dataset));
    LOG(INFO) << "node cache: evicted " << evicted.back() << " bytes=" << dataset.bytes;
  }
  return evicted;
}

absl::Status NodeCache::MakeEntry(const std::string& digest, const Journal& empty) const {
  const std::string folder = Folder(digest);
  const std::string files = FilesPath(options_.directory, digest);
  RETURN_IF_ERROR(MakeDirectories(files, kPrivateDirectory));
  RETURN_IF_ERROR(Share(folder, /*is_directory=*/true));
  RETURN_IF_ERROR(Share(files, /*is_directory=*/true));
  const std::string journal = JournalPath(folder);
  if (FileExists(journal)) {
    RETURN_IF_ERROR(CutJournal(journal));
    const absl::StatusOr<Journal> old = LoadJournal(journal);
    if (old.ok() && old->files_total == empty.files_total) return absl::OkStatus();
    LOG(WARNING) << "node cache: " << journal
                 << " cannot be used, so all files are copied anew: " << old.status();
  }
  return WriteFileAtomic(journal, HeadLine(empty), kPrivateFile);
}

// The files have their names: they are shared, and then the journal has them.
absl::Status NodeCache::Finish(const std::string& digest,
                               std::span<const data::FileToStage> files) const {
  std::string lines;
  for (const data::FileToStage& file : files) {
    const std::string path = JoinPath(FilesPath(options_.directory, digest), file.name);
    RETURN_IF_ERROR(Share(path, /*is_directory=*/false));
    ASSIGN_OR_RETURN(JournalFile finished, LookAt(path));
    finished.sha256 = file.sha256;
    lines += FinishedLine(file.name, finished);
  }
  return AppendToJournal(JournalPath(Folder(digest)), lines);
}

absl::StatusOr<Filled> NodeCache::Stage(const std::string& source, const Clock* clock,
                                        dataset::ProgressCallback progress) {
  ASSIGN_OR_RETURN(const dataset::Manifest manifest, dataset::LoadManifest(source));
  Filled filled{.digest = dataset::DatasetDigest(manifest)};
  if (HasLineBreak(manifest.name) ||
      std::any_of(manifest.files.begin(), manifest.files.end(),
                  [](const dataset::ManifestFile& file) { return HasLineBreak(file.path); }))
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": a name in its manifest has a line break"));
  const std::string folder = Folder(filled.digest);
  const std::string files_path = FilesPath(options_.directory, filled.digest);
  ASSIGN_OR_RETURN(UniqueFd all, LockAll());
  const absl::StatusOr<UniqueFd> lock = LockDataset(filled.digest, LOCK_EX);
  if (!lock.ok())
    return absl::AbortedError(absl::StrCat(
        manifest.name, " in the node cache is held by a run, or just being filled: try again when ",
        "that has ended"));
  RETURN_IF_ERROR(
      MakeEntry(filled.digest, {.name = manifest.name,
                                .bytes_total = dataset::TotalBytes(manifest),
                                .files_total = static_cast<int64_t>(manifest.files.size())}));
  ASSIGN_OR_RETURN(const Journal journal, LoadJournal(JournalPath(folder)));
  data::StagingJob job{.source_dir = source,
                       .target_dir = files_path,
                       .files = Missing(manifest, journal, files_path, &filled),
                       .is_cold = true};
  job.placed = [&](std::span<const data::FileToStage> files) {
    return Finish(filled.digest, files);
  };
  RETURN_IF_ERROR(Touch(UsedPath(folder)));
  ASSIGN_OR_RETURN(filled.evicted,
                   MakeRoom({.digest = filled.digest,
                             .bytes = dataset::TotalBytes(manifest) - filled.bytes_there,
                             .bytes_had = filled.bytes_there}));
  all.Reset();
  RETURN_IF_ERROR(data::CheckStagingSpace(job));
  std::set<std::string> folders;
  for (const data::FileToStage& file : job.files)
    for (size_t slash = file.name.find('/'); slash != std::string::npos;
         slash = file.name.find('/', slash + 1))
      folders.insert(file.name.substr(0, slash));
  for (const std::string& name : folders)
    RETURN_IF_ERROR(Share(JoinPath(files_path, name), /*is_directory=*/true));
  ASSIGN_OR_RETURN(const std::vector<std::string> shards, dataset::ListShards(source));
  absl::StatusOr<data::Staged> staged =
      shards.empty() ? data::StageFiles(job, clock, std::move(progress))
                     : data::StageArchives(ShardsWith(job.files, source, filled.digest, shards),
                                           manifest, job, clock, std::move(progress));
  ASSIGN_OR_RETURN(filled.staged, std::move(staged));
  return filled;
}

absl::Status NodeCache::Evict(const std::string& digest) {
  RETURN_IF_ERROR(CheckDigest(digest));
  ASSIGN_OR_RETURN(const UniqueFd all, LockAll());
  const std::string folder = Folder(digest);
  if (!FileExists(folder))
    return absl::NotFoundError(absl::StrCat("the node cache has no dataset ", digest));
  if (FileExists(PinnedPath(folder)))
    return absl::FailedPreconditionError(
        absl::StrCat("the dataset ", digest, " is pinned: unpin it first"));
  const absl::StatusOr<UniqueFd> lock = LockDataset(digest, LOCK_EX);
  if (!lock.ok())
    return absl::AbortedError(absl::StrCat(
        "the dataset ", digest, " is held by a run, or just being filled: try again later"));
  return Remove(digest);
}

absl::Status NodeCache::SetPinned(const std::string& digest, bool is_pinned) {
  RETURN_IF_ERROR(CheckDigest(digest));
  ASSIGN_OR_RETURN(const UniqueFd all, LockAll());
  if (!FileExists(Folder(digest)))
    return absl::NotFoundError(absl::StrCat("the node cache has no dataset ", digest));
  const std::string path = PinnedPath(Folder(digest));
  return is_pinned ? WriteFileAtomic(path, "", kPrivateFile) : RemoveTree(path);
}

absl::StatusOr<Lease> NodeCache::Hold(const std::string& digest) {
  RETURN_IF_ERROR(CheckDigest(digest));
  ASSIGN_OR_RETURN(const UniqueFd all, LockAll());
  const std::string folder = Folder(digest);
  if (!FileExists(folder))
    return absl::NotFoundError(absl::StrCat("the node cache has no dataset ", digest));
  absl::StatusOr<UniqueFd> lock = LockDataset(digest, LOCK_SH);
  if (!lock.ok())
    return absl::AbortedError(
        absl::StrCat("the dataset ", digest, " of the node cache is just being filled"));
  RETURN_IF_ERROR(Touch(UsedPath(folder)));
  return Lease{.files_path = FilesPath(options_.directory, digest),
               .journal_path = JournalPath(folder),
               .lock = *std::move(lock)};
}

}  // namespace assay::cache
