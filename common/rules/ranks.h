// How an entry divides its work over ranks: what no rule of MLPerf judges, but what cannot run
// otherwise. Judged before anything is queued, and once more by the trainer, with the same words.

#ifndef COMMON_RULES_RANKS_H_
#define COMMON_RULES_RANKS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/rules/finding.h"
#include "common/rules/hyperparameters.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

inline constexpr char kSpatialGridKey[] = "spatial_grid";
inline constexpr char kGlobalBatchKey[] = "global_batch_size";
inline constexpr char kGradientBucketKey[] = "gradient_bucket_mib";
inline constexpr char kDeviceCacheKey[] = "device_cache_mib";
inline constexpr char kMemoryLimitKey[] = "memory_limit_mib";
inline constexpr int64_t kGradientBucketMibMax = 4096;           // more than any model's gradients
inline constexpr int64_t kDeviceCacheMibMax = int64_t{1} << 24;  // more than any device has
inline constexpr int64_t kMemoryLimitMibMax = int64_t{1} << 24;

// What runs where. Less than one node or rank counts as one.
struct RankLayout {
  std::string benchmark;
  int64_t nodes = 1;
  int64_t ranks_per_node = 1;
  std::string backend;  // empty: not known, so not judged
};

// The rules, by id.
std::span<const TextRule> RankRules();

// Parts along depth and height that each sample is divided into; nullopt if `value` says no such
// thing: it is a list of two whole numbers from 1 to 64.
struct GridParts {
  int64_t depth = 1;
  int64_t height = 1;
};
std::optional<GridParts> ReadSpatialGrid(const JsonValue& value);

// What of `values` cannot work on such ranks; a value that is left out always can. `values` are the
// hyperparameters, and what is known of the dataset's samples.
//   R-RNK-001 spatial_grid is no pair of parts; 002 the benchmark's samples cannot be divided; 003
//   a block is no multiple of 32 voxels; 004 the ranks are no multiple of the group; 005 groups and
//   nodes do not fit; 006 the groups (without a grid: the ranks) do not share the global batch
//   evenly; 007 and 008 a bucket or a cache is no such size; 009 the backend has no memory of its
//   own to keep samples in; 010 the backend does not run the benchmark; 011 a memory limit is no
//   such size.
std::vector<Finding> CheckRanks(const Hyperparameters& values, const RankLayout& layout);

}  // namespace assay::rules

#endif  // COMMON_RULES_RANKS_H_
