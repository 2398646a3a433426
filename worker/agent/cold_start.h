// Caches are reset before a run, and it is proven that they are: no page of the dataset's samples
// is in this node's memory. Where the kernel does not tell, that is said, with the reason.

#ifndef WORKER_AGENT_COLD_START_H_
#define WORKER_AGENT_COLD_START_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/json_value.h"
#include "worker/agent/account.h"
#include "worker/agent/cache_reset.h"
#include "worker/agent/file_holders.h"
#include "worker/agent/file_system.h"
#include "worker/agent/residency.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

struct ColdStart {
  CacheReset reset;
  int tries = 0;
  FileSystem file_system;
  Residency residency;                 // after the last try
  std::optional<int64_t> bound_bytes;  // of pages of any file in this node's memory, at most
  FileHolders holders;                 // of the pages that stayed
  JsonValue node_cache{};       // what was put into the stage directory before; null: nothing
  size_t other_step_count = 0;  // of other runs, which may read the same files meanwhile
};

enum class Coldness {
  kCold,     // nothing of what was looked at is in memory
  kBounded,  // at most a thousandth of the dataset is, or can be
  kWarm,     // pages are in memory
  kUnknown,  // the kernel does not tell
};
Coldness ColdnessOf(const ColdStart& start);

uint64_t RandomSeed();

struct ColdStartOptions {
  std::string dataset_directory;
  std::vector<std::string> sample_folders;  // below it; that of training first
  std::string drop_caches_path;
  std::string helper_socket;
  ResidencyOptions residency;
};

// Resets the caches, once more if pages stay, and then finds out who holds them. As ResetCaches;
// errno's code if files cannot be listed. Blocks.
absl::StatusOr<ColdStart> MakeCold(const ColdStartOptions& options, const Clock& clock);

// What stands against a start, for people; empty unless pages are in memory.
std::string WhyWarm(const ColdStart& start);

// The end of a run of `division` that may not start. None if it may: it is cold or nobody knows, or
// the division is not the closed one, or other runs are at work on this machine, which read what
// they like (agents of `assay dev` share one).
std::optional<StepExit> RefusalOf(const ColdStart& start, absl::string_view division);

// Metadata of cache_clear.
JsonObject CacheClearMetadata(const ColdStart& start);

// Begins the log at `path`, which becomes the ranks', with cache_clear.
absl::Status LogCacheClear(const ColdStart& start, const std::string& path,
                           const std::optional<Account>& ranks, const Clock& clock);

// Writes all of it to witness/caches.json and, if pages are in memory, R-TIM-005 to
// witness/memory.json.
absl::Status RecordColdStart(const ColdStart& start, const RunDirectory& directory,
                             const Stamp& stamp);

// (Cached - Shmem) of /proc/meminfo: at most so many bytes of files are in memory.
std::optional<int64_t> CachedFileBytes(absl::string_view meminfo);

}  // namespace assay::agent

#endif  // WORKER_AGENT_COLD_START_H_
