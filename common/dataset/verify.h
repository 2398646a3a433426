// Checks a dataset on disk against its manifest, byte by byte.

#ifndef COMMON_DATASET_VERIFY_H_
#define COMMON_DATASET_VERIFY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/dataset/parallel.h"

namespace assay::dataset {

struct Problem {
  std::string file;               // relative to the dataset's directory
  std::optional<int64_t> offset;  // byte in the file, where one is known
  std::string problem;
  std::string remedy;
};

// Reads every file of the dataset in `dir` with `threads` threads and returns all that is wrong,
// sorted by file: missing and extra files, size, SHA-256, gzip stream, checksums of the records,
// shape of the sample, targets or data that are not finite, negative counts, unknown labels. An
// empty list means that every byte is as the manifest says. Of a dataset in archives (shards.h) the
// members' names, sizes and digests, and the index; the first problem. Blocks. NOT_FOUND: there is
// no manifest. DATA_LOSS: the manifest itself is damaged.
absl::StatusOr<std::vector<Problem>> VerifyDataset(const std::string& dir, int threads,
                                                   ProgressCallback progress = nullptr);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_VERIFY_H_
