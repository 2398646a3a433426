// The node cache: datasets that a node keeps on its own disk between runs, named by the digests of
// their manifests. Where a round lets staging be off the clock, a run starts from them
// (cache_link.h). ADR 0197.
//
//   <directory>/lock               held (flock) while what is here is looked at or changed
//   <directory>/<digest>.lock      held by who fills the dataset (alone), by runs (together), until
//                                  they end, however they end. Never removed.
//   <directory>/<digest>/files/    the dataset, as its manifest says
//   <directory>/<digest>/journal   which files are whole (cache_journal.h)
//   <directory>/<digest>/used      its mtime is the last use
//   <directory>/<digest>/pinned    exists: it is evicted by nobody
//   <directory>/.evicted-*         what is being removed
//
// Any number of processes work with one directory at once, all of the agent's account. A directory
// that another account can write is worth nothing: it is refused.

#ifndef WORKER_CACHE_NODE_CACHE_H_
#define WORKER_CACHE_NODE_CACHE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/dataset/parallel.h"
#include "common/file.h"
#include "worker/cache/cache_journal.h"
#include "worker/data/staging.h"

namespace assay::cache {

struct NodeCacheOptions {
  std::string directory;
  int64_t quota_bytes = 0;       // of all datasets together; at least 1
  std::optional<gid_t> readers;  // the group of runs' ranks; none: they have our account
};

// A dataset in the cache.
struct CachedDataset {
  std::string digest;
  std::string name;  // as its manifest calls it
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t files_total = 0;  // of the dataset; more than `files`: it is not all there
  int64_t bytes_total = 0;
  absl::Time used;
  bool is_pinned = false;
  bool is_held = false;  // by a run, or by who fills it
};

// What filling has done.
struct Filled {
  std::string digest;
  int64_t files_there = 0;  // already, and not copied again
  int64_t bytes_there = 0;
  data::Staged staged;
  std::vector<std::string> evicted;  // to make room: names and digests
};

// A dataset that stays as long as this lives.
struct Lease {
  std::string files_path;
  std::string journal_path;
  UniqueFd lock;
};

class NodeCache {
 public:
  // Makes the directory. FAILED_PRECONDITION: another account can write it, or it has no quota.
  static absl::StatusOr<NodeCache> Open(NodeCacheOptions options);

  // Fills the cache with the dataset in `source`, whose manifest names it: files that are whole are
  // left, the rest is copied, from archives if it lies in some (archive_staging.h), and compared
  // with the manifest (staging.h), durable and out of memory. Least recently used datasets go if it
  // needs their room: none that is pinned or held, and none at all if that would not do. Killed at
  // any point, the next call goes on. Blocks. ABORTED: a run holds it, or another fills it.
  // RESOURCE_EXHAUSTED: no room, and ABORTED: none while runs hold what could go; the message says
  // who has it. Otherwise as LoadManifest and StageFiles; what was finished stays.
  absl::StatusOr<Filled> Stage(const std::string& source, const Clock* clock,
                               dataset::ProgressCallback progress = nullptr);

  // By last use, the longest unused first.
  absl::StatusOr<std::vector<CachedDataset>> List();

  // The digest of the one dataset whose digest begins so, or which is called so. NOT_FOUND;
  // INVALID_ARGUMENT: there are several.
  absl::StatusOr<std::string> Find(absl::string_view name);

  // NOT_FOUND: it is not there. FAILED_PRECONDITION: it is pinned. ABORTED: it is held.
  absl::Status Evict(const std::string& digest);

  // NOT_FOUND: it is not there.
  absl::Status SetPinned(const std::string& digest, bool is_pinned);

  // Keeps the dataset from being evicted or filled, and makes it the last used. NOT_FOUND: it is
  // not there. ABORTED: it is just being filled.
  absl::StatusOr<Lease> Hold(const std::string& digest);

  // Where files of a dataset lie.
  static std::string FilesPath(const std::string& directory, const std::string& digest);

 private:
  explicit NodeCache(NodeCacheOptions options) : options_(std::move(options)) {}

  struct Room {
    std::string digest;  // for whom
    int64_t bytes = 0;   // that it needs besides what it has
    int64_t bytes_had = 0;
  };

  std::string Folder(const std::string& digest) const;
  absl::StatusOr<UniqueFd> LockAll() const;
  absl::StatusOr<UniqueFd> LockDataset(const std::string& digest, int how) const;
  absl::StatusOr<std::vector<CachedDataset>> ListLocked() const;
  absl::StatusOr<CachedDataset> Describe(const std::string& digest) const;
  absl::StatusOr<std::vector<std::string>> MakeRoom(const Room& room) const;
  absl::Status Remove(const std::string& digest) const;
  void RemoveLeftovers() const;
  absl::Status Share(const std::string& path, bool is_directory) const;
  absl::Status MakeEntry(const std::string& digest, const Journal& empty) const;
  absl::Status Finish(const std::string& digest, std::span<const data::FileToStage> files) const;

  NodeCacheOptions options_;
};

}  // namespace assay::cache

#endif  // WORKER_CACHE_NODE_CACHE_H_
