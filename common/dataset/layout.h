// Where the files of a dataset lie: <dir>/train/*.tfrecord, <dir>/validation/*.tfrecord and
// <dir>/manifest.json; DeepCAM's end in .h5. Source: mlcommons/hpc, cosmoflow, data/cosmo.py.

#ifndef COMMON_DATASET_LAYOUT_H_
#define COMMON_DATASET_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::dataset {

enum class Split { kTrain, kValidation };

// The folder of a split: "train" or "validation".
absl::string_view SplitName(Split split);

inline constexpr absl::string_view kSampleSuffix = ".tfrecord";
inline constexpr absl::string_view kManifestName = "manifest.json";
inline constexpr absl::string_view kShardFolder = "shards";  // of archives: shards.h

// Names of the sample files of a split, relative to `dir` ("train/..."), sorted bytewise. Lists the
// directory and opens no sample. NOT_FOUND if there is no such directory.
absl::StatusOr<std::vector<std::string>> ListSamples(const std::string& dir, Split split,
                                                     absl::string_view suffix = kSampleSuffix);

// The first `count` of them, as the reference takes them.
// FAILED_PRECONDITION if there are fewer.
absl::StatusOr<std::vector<std::string>> ListSamples(const std::string& dir, Split split,
                                                     int64_t count,
                                                     absl::string_view suffix = kSampleSuffix);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_LAYOUT_H_
