// What a node wrote down when it reset its caches before a run: caches_N.json (docs/reviewer.md has
// all of it), as far as runs are judged by it.

#ifndef COMMON_TELEMETRY_CACHE_RECORD_H_
#define COMMON_TELEMETRY_CACHE_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace assay::telemetry {

struct CacheRecord {
  std::string coldness;     // "cold", "bounded", "warm", "unknown"
  std::string file_system;  // of the dataset
  bool is_local = false;    // a device of the node has the dataset; false too: not known
  std::string boot_id;      // of the machine, which nodes may share; empty: not known
  std::optional<int64_t> train_bytes;
  int64_t files_elsewhere = 0;
  int64_t other_runs = 0;
};

// What is missing, of another type or no JSON at all is as if nobody had written it down.
CacheRecord ReadCacheRecord(absl::string_view text);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_CACHE_RECORD_H_
