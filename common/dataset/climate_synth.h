// Synthetic snapshots in the manner of CAM5: sixteen fields on a latitude-longitude grid with
// tropical cyclones and atmospheric rivers drawn into them, and labels as TECA would set them.
//
// A snapshot is a pure function of (ClimateParameters, split, index): it does not depend on other
// snapshots, on threads or on order. Numbers keep 14 significant bits, so that the last bits in
// which processors differ do not show. Formulas: docs/datasets.md.

#ifndef COMMON_DATASET_CLIMATE_SYNTH_H_
#define COMMON_DATASET_CLIMATE_SYNTH_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "common/dataset/climate_file.h"
#include "common/dataset/layout.h"

namespace assay::dataset {

struct ClimateParameters {
  uint64_t seed = 0;
  ClimateExtents extents = {96, 144};  // multiples of 16, up to 768 x 1152
};

// Generates snapshots; holds the buffers and plans of one thread. Not thread-safe, but any number
// may exist.
class ClimateSynthesizer {
 public:
  // INVALID_ARGUMENT: extents that are no multiples of 16 or out of range.
  static absl::StatusOr<std::unique_ptr<ClimateSynthesizer>> Create(
      const ClimateParameters& parameters);
  ~ClimateSynthesizer();

  // `index` < 2^31. Takes tens of milliseconds at 96 x 144, two seconds at 768 x 1152.
  ClimateSample Generate(Split split, uint32_t index);

 private:
  class Noise;
  ClimateSynthesizer(const ClimateParameters& parameters, std::unique_ptr<Noise> noise);

  const ClimateParameters parameters_;
  const std::unique_ptr<Noise> noise_;
};

}  // namespace assay::dataset

#endif  // COMMON_DATASET_CLIMATE_SYNTH_H_
