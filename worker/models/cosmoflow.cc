#include "worker/models/cosmoflow.h"

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/layers.h"
#include "worker/engine/spatial_layers.h"

namespace assay {
namespace {

constexpr double kLeakySlope = 0.3;
constexpr double kOutputScale = 1.2;
constexpr int kBlocks = 5;
constexpr int64_t kBlockUnit = int64_t{1} << kBlocks;  // divides the edge, and each rank's part
constexpr int64_t kMaxBatch = 4096;                    // bounds on what a spec may ask for
constexpr int64_t kMaxEdge = 512;
constexpr int64_t kMaxFilters = 256;

absl::Status Demand(bool condition, absl::string_view field, absl::string_view allowed) {
  if (condition) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cosmoflow: ", field, " must be ", allowed));
}

}  // namespace

absl::Status Validate(const CosmoflowSpec& spec) {
  RETURN_IF_ERROR(Demand(spec.batch >= 1 && spec.batch <= kMaxBatch, "batch",
                         absl::StrCat("in 1..", kMaxBatch, ", is ", spec.batch)));
  RETURN_IF_ERROR(Demand(
      spec.cube_edge >= 32 && spec.cube_edge <= kMaxEdge && spec.cube_edge % kBlockUnit == 0,
      "cube_edge", absl::StrCat("a multiple of 32 up to ", kMaxEdge, ", is ", spec.cube_edge)));
  RETURN_IF_ERROR(Demand(spec.kernel == 2 || spec.kernel == 3, "kernel",
                         absl::StrCat("2 or 3, is ", spec.kernel)));
  RETURN_IF_ERROR(Demand(spec.base_filters >= 1 && spec.base_filters <= kMaxFilters, "base_filters",
                         absl::StrCat("in 1..", kMaxFilters, ", is ", spec.base_filters)));
  RETURN_IF_ERROR(Demand(spec.dropout >= 0 && spec.dropout < 1, "dropout",
                         absl::StrCat("in [0, 1), is ", spec.dropout)));
  RETURN_IF_ERROR(Demand(spec.l2 >= 0 && spec.l2 < 1e6, "l2",
                         absl::StrCat("finite and not negative, is ", spec.l2)));
  for (const int parts : spec.grid.parts)
    RETURN_IF_ERROR(
        Demand(parts >= 1 && parts <= kMaxEdge && spec.cube_edge % (kBlockUnit * parts) == 0,
               "spatial grid",
               absl::StrCat("such that each part of the edge of ", spec.cube_edge,
                            " is a multiple of ", kBlockUnit, ", is ", spec.grid.ToString())));
  return absl::OkStatus();
}

Interval CosmoflowBlock(const CosmoflowSpec& spec, const SpatialPlace& place, size_t axis) {
  return BlockAlong(axis, spec.cube_edge, place, HaloOf(spec.kernel));
}

absl::StatusOr<std::unique_ptr<Model>> MakeCosmoflow(const CosmoflowSpec& spec, Backend* backend,
                                                     SpatialGroup* group, const Model* trained,
                                                     const MemoryLimit& limit) {
  RETURN_IF_ERROR(Validate(spec));
  const SpatialGrid& grid = spec.grid;
  const SpatialPlace place = group == nullptr ? SpatialPlace{} : group->place();
  CHECK(place.grid == grid) << "spec=" << grid.ToString() << " group=" << place.grid.ToString();
  Shape shape = {spec.batch, CosmoflowBlock(spec, place, 0).extent,
                 CosmoflowBlock(spec, place, 1).extent, spec.cube_edge, kCosmoflowChannels};
  auto model = std::make_unique<Model>(backend, shape);
  const auto add = [&](std::unique_ptr<Layer> layer) {
    shape = layer->output();
    model->Add(std::move(layer));
  };
  // Between blocks of one rank; neighbours send each other real numbers.
  const bool has_maps = !grid.IsSplit();
  add(std::make_unique<Log1pLayer>(backend, shape, has_maps));
  for (int block = 0; block < kBlocks; ++block) {
    // The first convolution's halo comes with the sample.
    if (block > 0 && grid.IsSplit())
      add(std::make_unique<HaloLayer>(backend, group, shape, spec.kernel));
    const ConvPoolLayer::Options options = {
        .name = absl::StrCat("conv", block + 1),
        .kernel = spec.kernel,
        .filters = spec.base_filters << block,
        .slope = kLeakySlope,
        .has_halo = {grid.IsSplit(0), grid.IsSplit(1), false},
        .empty_channels = block == 0 ? shape[4] - kCosmoflowChannels : 0,
        .reads_map = has_maps,
        .writes_map = has_maps && block + 1 < kBlocks};
    add(std::make_unique<ConvPoolLayer>(backend, shape, options));
  }
  if (grid.IsSplit()) add(std::make_unique<GatherLayer>(backend, group, shape));
  const Activation leaky = {Activation::Kind::kLeakyRelu, kLeakySlope};
  const Activation tanh = {Activation::Kind::kScaledTanh, kOutputScale};
  const DenseLayer::Options dense[] = {
      {"fc1", 128, leaky, spec.dropout, 0, spec.l2},
      {"fc2", 64, leaky, spec.dropout, 1, spec.l2},
      {.name = "fc3", .units = kCosmoflowOutputs, .activation = tanh}};
  for (const DenseLayer::Options& options : dense)
    add(std::make_unique<DenseLayer>(backend, shape, options));
  RETURN_IF_ERROR(trained == nullptr ? model->Commit(limit) : model->CommitForEvaluation(*trained));
  return model;
}

}  // namespace assay
