// DeepCAM's files: HDF5 with the group "climate" (mlcommons/hpc, deepcam,
// data/cam_hdf5_dataset.py).
//
//   data-*.h5: "data" float32 [height, width, 16], "labels_0" and "labels_1" integer
//     [height, width]: 0 background, 1 tropical cyclone, 2 atmospheric river. Labels of any integer
//     type are read; only labels_0 is used in training.
//   stats.h5: "count" int64, "mean", "sqmean", "minval", "maxval" float32 [16], over the training
//     split.
//
// All functions are thread-safe: the library is not, so calls to it wait for one another. Files are
// parsed from memory, so that waiting for the disk happens outside.

#ifndef COMMON_DATASET_CLIMATE_FILE_H_
#define COMMON_DATASET_CLIMATE_FILE_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::dataset {

inline constexpr int kClimateChannels = 16;
inline constexpr int kClimateClasses = 3;
inline constexpr absl::string_view kClimateSuffix = ".h5";
inline constexpr absl::string_view kClimateStatisticsName = "stats.h5";

// TMQ, U850, V850, UBOT, VBOT, QREFHT, PS, PSL, T200, T500, PRECT, TS, TREFHT, Z1000, Z200, ZBOT.
extern const std::array<absl::string_view, kClimateChannels> kClimateChannelNames;

struct ClimateExtents {
  int height = 0;  // latitudes, from south to north
  int width = 0;   // longitudes

  int64_t pixels() const { return int64_t{height} * width; }
  int64_t values() const { return pixels() * kClimateChannels; }
  friend bool operator==(const ClimateExtents&, const ClimateExtents&) = default;
};

struct ClimateSample {
  ClimateExtents extents;
  std::vector<float> data;              // [height, width, 16]
  std::vector<uint8_t> labels;          // [height, width], default thresholds
  std::vector<uint8_t> relaxed_labels;  // the same with relaxed thresholds; empty after parsing
};

struct ClimateStatistics {
  using Channels = std::array<float, kClimateChannels>;
  int64_t count = 0;  // samples
  Channels mean = {}, mean_square = {}, min = {}, max = {};

  friend bool operator==(const ClimateStatistics&, const ClimateStatistics&) = default;
};

// Where a parsed sample goes: data (values() numbers) and labels (pixels()).
struct ClimateDestination {
  std::span<float> data;
  std::span<uint8_t> labels;
};

// The extents of the sample in `file`. DATA_LOSS: not such a file, its numbers lie in another one,
// or it claims more numbers than a sample may have (kMaxFileBytes).
absl::StatusOr<ClimateExtents> ClimateExtentsOf(absl::string_view file);

// Reads data and labels_0 of the bytes of a sample file.
// DATA_LOSS: not an HDF5 file, a dataset is missing, of another shape or kind, or has its numbers
// in another file, a label is not in 0..2, or a number is not finite; the message says which.
absl::Status ParseClimateSample(absl::string_view file, const ClimateExtents& extents,
                                const ClimateDestination& destination);

// The bytes of a sample file; both kinds of labels must be there. Equal samples give equal bytes.
absl::StatusOr<std::string> EncodeClimateSample(const ClimateSample& sample);

// DATA_LOSS as above, or a channel whose maximum is not above its minimum.
absl::StatusOr<ClimateStatistics> ParseClimateStatistics(absl::string_view file);
absl::StatusOr<std::string> EncodeClimateStatistics(const ClimateStatistics& statistics);

// x <- (x - min) * (1 / (max - min)) of its channel, in float32 as the reference; `data` is
// [pixels, 16].
void NormaliseClimate(const ClimateStatistics& statistics, std::span<float> data);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_CLIMATE_FILE_H_
