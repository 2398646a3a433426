// A dataset as tar archives ("shards"), for file systems on which opening each of its files is what
// takes the time.
//
//   <target>/manifest.json                       the dataset's own
//   <target>/shards/00000.tar.zst, ...           its files, in the manifest's order
//   <target>/shards.json                         which archive has which

#ifndef COMMON_DATASET_PACK_H_
#define COMMON_DATASET_PACK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "common/dataset/parallel.h"

namespace assay::dataset {

enum class ShardCodec { kNone, kGzip, kZstd };

struct PackOptions {
  ShardCodec codec = ShardCodec::kNone;
  int64_t shard_bytes = int64_t{256} << 20;  // of a shard's files; a larger file has one for itself
  // Samples i of a split with the same i modulo `parts` lie together, and apart from others: so
  // ranks, whose number divides it, read no archive of which they need a part alone. 1: in order.
  int parts = 1;
  int threads = 1;
};

struct Packed {
  int64_t shards = 0;
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;  // of the shards
};

// Packs the dataset in `dir` into `target`, which is made and must hold no shards; its index
// and then its manifest are written last. The same dataset gives the same tar streams: they are of
// nobody and of no time. Files are compared with the manifest on the way. Blocks. ALREADY_EXISTS:
// there are shards. DATA_LOSS: a file is not what the manifest says. Otherwise as LoadManifest, or
// errno's code.
absl::StatusOr<Packed> PackDataset(const std::string& dir, const std::string& target,
                                   const PackOptions& options, ProgressCallback progress = nullptr);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_PACK_H_
