// Datasets in the caches of nodes (worker/cache), as plain values.

#ifndef SERVER_CORE_NODE_CACHE_H_
#define SERVER_CORE_NODE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay::core {

enum class CacheAction {
  kStage,
  kEvict,
  kPin,  // what is there is not evicted
  kUnpin,
};

inline constexpr CacheAction kCacheActions[] = {CacheAction::kStage, CacheAction::kEvict,
                                                CacheAction::kPin, CacheAction::kUnpin};

enum class CacheOrderState {
  kPending,  // goes on, or waits for a run on the node, an order before it or another try
  kDone,
  kFailed,
};

// What a node shall do about a dataset in its cache.
struct CacheOrder {
  int64_t number = 0;  // of the event that made it or its last try: tells it from all others
  CacheAction action = CacheAction::kStage;
  std::string dataset;  // its id; path and digest are those that it had then
  std::string path;
  std::string digest;
  CacheOrderState state = CacheOrderState::kPending;
  std::string reason;  // kFailed, or of the last try
  int64_t created_at_us = 0;
  int64_t ended_at_us = 0;
  int32_t failure_count = 0;  // tries that have failed
  int64_t retry_at_us = 0;    // kPending: it waits until then for another try; 0: it does not
  bool operator==(const CacheOrder&) const = default;
};

struct CachedDataset {
  std::string digest;
  std::string name;  // as its manifest calls it
  int64_t files = 0;
  int64_t files_total = 0;
  int64_t bytes = 0;
  int64_t bytes_total = 0;
  bool is_pinned = false;
  bool is_in_use = false;
  bool operator==(const CachedDataset&) const = default;
};

// What an agent says of its node's cache. See CacheReport in resources.proto.
struct CacheReport {
  int64_t number = 0;  // of the order that it was given last; 0: none
  bool is_done = false;
  std::string problem;  // is_done, and it has failed
  int64_t files = 0;
  int64_t files_total = 0;
  int64_t bytes = 0;
  int64_t bytes_total = 0;
  std::vector<CachedDataset> datasets;
  std::string look_problem;
  bool is_temporary = false;  // `problem` may pass by itself
  bool operator==(const CacheReport&) const = default;
};

inline constexpr size_t kCacheOrderCountMax = 256;  // of a worker; the oldest that ended goes first
inline constexpr size_t kCachedDatasetCountMax = 1024;

absl::string_view ToString(CacheAction action);     // "STAGE"
absl::string_view ToString(CacheOrderState state);  // "PENDING"

}  // namespace assay::core

#endif  // SERVER_CORE_NODE_CACHE_H_
