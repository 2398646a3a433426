// A run starts from what its node's cache has: those files are compared with the manifest and get a
// second name (a hard link) in the run's stage directory. Nothing is copied, and what is evicted
// later stays as long as the run needs it.

#ifndef WORKER_CACHE_CACHE_LINK_H_
#define WORKER_CACHE_CACHE_LINK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "worker/cache/node_cache.h"

namespace assay::cache {

struct LinkOptions {
  std::string target_dir;  // on the cache's file system
  uint64_t seed = 0;       // of the order in which files are checked
  // Files are read and compared for so long; those checked by then are the sample. Where one of
  // them is damaged, only what was checked is linked.
  absl::Duration budget = absl::Minutes(2);
  std::function<bool()> is_stopped = [] { return false; };
};

// What has been linked.
struct Linked {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t checked_files = 0;  // whose SHA-256 was computed and is the manifest's
  uint64_t seed = 0;
  std::vector<std::string> damaged;  // were not linked, and are no longer in the cache
  std::vector<std::string> folders;  // below the target that the files lie in
};

// Links every file of the held dataset that is as it was left, none of them in memory (as far as
// the kernel lets this account say). What is damaged goes from the cache. Blocks; must be the
// cache's account. CANCELLED: stopped. FAILED_PRECONDITION: the target is on another file system.
// Otherwise errno's code; then the target may have some of the links.
absl::StatusOr<Linked> LinkDataset(const Lease& lease, const LinkOptions& options,
                                   const Clock& clock);

// What has been read.
struct Verified {
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t changed_files = 0;         // not read: they are not as they were left, and are never used
  std::vector<std::string> damaged;  // are no longer in the cache
};

// Reads and compares every file of the held dataset, however long that takes. What is damaged goes
// from the cache. CANCELLED: stopped; otherwise errno's code. Blocks.
absl::StatusOr<Verified> VerifyCached(const Lease& lease, const std::function<bool()>& is_stopped);

}  // namespace assay::cache

#endif  // WORKER_CACHE_CACHE_LINK_H_
