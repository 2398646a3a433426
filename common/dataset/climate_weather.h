// Storms for synthetic snapshots: atmospheric rivers and tropical cyclones, drawn into the fields
// and labelled by thresholds on what they add.

#ifndef COMMON_DATASET_CLIMATE_WEATHER_H_
#define COMMON_DATASET_CLIMATE_WEATHER_H_

#include <cstddef>
#include <vector>

#include "common/dataset/climate_file.h"
#include "common/random.h"

namespace assay::dataset {

// The channels of a snapshot, in their order on disk.
enum class Field : size_t {
  kTmq,
  kU850,
  kV850,
  kUbot,
  kVbot,
  kQrefht,
  kPs,
  kPsl,
  kT200,
  kT500,
  kPrect,
  kTs,
  kTrefht,
  kZ1000,
  kZ200,
  kZbot,
};

// The fields of one snapshot in double precision, channels fastest.
class WeatherMap {
 public:
  explicit WeatherMap(const ClimateExtents& extents)
      : extents_(extents), values_(static_cast<size_t>(extents.values())) {}

  double& At(Field field, size_t pixel) {
    return values_[pixel * kClimateChannels + static_cast<size_t>(field)];
  }
  const std::vector<double>& values() const { return values_; }
  const ClimateExtents& extents() const { return extents_; }

 private:
  const ClimateExtents extents_;
  std::vector<double> values_;
};

// Draws 3 to 6 rivers and 2 to 6 cyclones into TMQ, U850, V850, PSL, PRECT, T200 and T500, and sets
// both kinds of labels of `sample`; the relaxed ones have thresholds lower by a fifth. Where a
// cyclone and a river meet, the cyclone is labelled.
void DrawWeather(const Stream& stream, WeatherMap* map, ClimateSample* sample);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_CLIMATE_WEATHER_H_
