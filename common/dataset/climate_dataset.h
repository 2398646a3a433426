// Writes a synthetic DeepCAM dataset to disk, in the real layout and format, with a manifest; and
// checks one.
//
//   <dir>/train/data-YYYY-MM-DD-ii-e.h5, <dir>/validation/..., <dir>/stats.h5, <dir>/manifest.json

#ifndef COMMON_DATASET_CLIMATE_DATASET_H_
#define COMMON_DATASET_CLIMATE_DATASET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/dataset/climate_synth.h"
#include "common/dataset/layout.h"
#include "common/dataset/manifest.h"
#include "common/dataset/parallel.h"

namespace assay::dataset {

struct ClimateDatasetSpec {
  std::string name = "camsyn";  // stands in the manifest
  ClimateParameters parameters;
  int64_t train_samples = 0;
  int64_t validation_samples = 0;
};

// "train/data-1979-01-01-00-1.h5": eight snapshots a day, months of 28 days; the last number tells
// the splits apart. Bytewise order is order by index, up to 20 million.
std::string ClimateFileName(Split split, uint32_t index);

// As GenerateCosmoDataset; stats.h5 is that of the training split.
absl::StatusOr<Manifest> GenerateClimateDataset(const std::string& dir,
                                                const ClimateDatasetSpec& spec, int threads,
                                                ProgressCallback progress = nullptr);

// Whether the bytes of the file `name` of a dataset are what they should be: a sample with finite
// numbers and known labels, or statistics. DATA_LOSS says what is wrong.
absl::Status CheckClimateFile(const std::string& name, absl::string_view bytes);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_CLIMATE_DATASET_H_
