#include "worker/data/sample_format.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/dataset/example.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/status.h"
#include "worker/data/cube_symmetry.h"

namespace assay::data {
namespace {

class CosmoflowReader : public SampleReader {
 public:
  CosmoflowReader(int cube_edge, dataset::Compression compression, const CubeBlock& block)
      : cube_edge_(cube_edge), block_(block), file_(compression) {}

  absl::Status Read(const SampleToRead& sample, const SamplePlace& place) override {
    ASSIGN_OR_RETURN(const absl::string_view payload, file_.ReadOnly(sample.path));
    const absl::StatusOr<dataset::CosmoSampleView> found =
        dataset::ParseCosmoSample(payload, cube_edge_);
    if (!found.ok()) return Annotate(found.status(), sample.path);
    CHECK(sizeof(found->targets) == place.targets.size());
    CutTurnedBlock(found->voxels, cube_edge_, block_, CubeSymmetryOf(sample.symmetry), place.input);
    std::memcpy(place.targets.data(), found->targets.data(), place.targets.size());
    return absl::OkStatus();
  }
  int64_t stored_bytes() const override { return static_cast<int64_t>(file_.stored().size()); }

 private:
  const int cube_edge_;
  const CubeBlock block_;
  dataset::RecordFile file_;
};

// The statistics that all readers share, read by the first that needs them.
class SharedStatistics {
 public:
  explicit SharedStatistics(std::string path) : path_(std::move(path)) {}

  // NOT_FOUND, DATA_LOSS: as SampleReader::Read; again at every later call.
  absl::StatusOr<dataset::ClimateStatistics> Get() {
    MutexLock lock(&mutex_);
    if (!statistics_.has_value()) statistics_ = Read();
    return *statistics_;
  }

 private:
  absl::StatusOr<dataset::ClimateStatistics> Read() const {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path_));
    absl::StatusOr<dataset::ClimateStatistics> statistics = dataset::ParseClimateStatistics(bytes);
    if (!statistics.ok()) return Annotate(statistics.status(), path_);
    return statistics;
  }

  const std::string path_;
  Mutex mutex_;
  std::optional<absl::StatusOr<dataset::ClimateStatistics>> statistics_ ABSL_GUARDED_BY(mutex_);
};

class DeepcamReader : public SampleReader {
 public:
  // The readers of one format share `statistics`.
  DeepcamReader(const dataset::ClimateExtents& extents,
                std::shared_ptr<SharedStatistics> statistics)
      : extents_(extents), statistics_(std::move(statistics)) {}

  absl::Status Read(const SampleToRead& sample, const SamplePlace& place) override {
    CHECK(sample.symmetry == 0) << "maps are not turned";
    const std::string& path = sample.path;
    ASSIGN_OR_RETURN(const dataset::ClimateStatistics statistics, statistics_->Get());
    ASSIGN_OR_RETURN(bytes_, ReadFile(path, dataset::kMaxFileBytes));
    const std::span<float> data(reinterpret_cast<float*>(place.input.data()),
                                place.input.size() / sizeof(float));
    const std::span<uint8_t> labels(reinterpret_cast<uint8_t*>(place.targets.data()),
                                    place.targets.size());
    RETURN_IF_ERROR(Annotate(dataset::ParseClimateSample(bytes_, extents_, {data, labels}), path));
    dataset::NormaliseClimate(statistics, data);
    return absl::OkStatus();
  }
  int64_t stored_bytes() const override { return static_cast<int64_t>(bytes_.size()); }

 private:
  const dataset::ClimateExtents extents_;
  const std::shared_ptr<SharedStatistics> statistics_;
  std::string bytes_;  // of the last file
};

}  // namespace

SampleFormat CosmoflowFormat(int cube_edge, dataset::Compression compression,
                             std::optional<CubeBlock> block) {
  const CubeBlock kept = block.value_or(WholeCube(cube_edge));
  return {.input_bytes = BlockBytes(kept, cube_edge),
          .target_bytes = dataset::kCosmoTargets * sizeof(float),
          .make_reader = [cube_edge, compression, kept] {
            return std::make_unique<CosmoflowReader>(cube_edge, compression, kept);
          }};
}

SampleFormat DeepcamFormat(const dataset::ClimateExtents& extents, std::string statistics_path) {
  auto statistics = std::make_shared<SharedStatistics>(std::move(statistics_path));
  return {.input_bytes = static_cast<size_t>(extents.values()) * sizeof(float),
          .target_bytes = static_cast<size_t>(extents.pixels()),
          .make_reader = [extents, statistics] {
            return std::make_unique<DeepcamReader>(extents, statistics);
          }};
}

}  // namespace assay::data
