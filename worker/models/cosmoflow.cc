#include "worker/models/cosmoflow.h"

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "worker/engine/layers.h"

namespace assay {
namespace {

constexpr double kLeakySlope = 0.3;
constexpr double kOutputScale = 1.2;
constexpr int kBlocks = 5;           // so that 2^5 must divide the cube's edge
constexpr int64_t kMaxBatch = 4096;  // bounds on what a spec may ask for
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
      spec.cube_edge >= 32 && spec.cube_edge <= kMaxEdge && spec.cube_edge % 32 == 0, "cube_edge",
      absl::StrCat("a multiple of 32 up to ", kMaxEdge, ", is ", spec.cube_edge)));
  RETURN_IF_ERROR(Demand(spec.kernel == 2 || spec.kernel == 3, "kernel",
                         absl::StrCat("2 or 3, is ", spec.kernel)));
  RETURN_IF_ERROR(Demand(spec.base_filters >= 1 && spec.base_filters <= kMaxFilters, "base_filters",
                         absl::StrCat("in 1..", kMaxFilters, ", is ", spec.base_filters)));
  RETURN_IF_ERROR(Demand(spec.dropout >= 0 && spec.dropout < 1, "dropout",
                         absl::StrCat("in [0, 1), is ", spec.dropout)));
  return Demand(spec.l2 >= 0 && spec.l2 < 1e6, "l2",
                absl::StrCat("finite and not negative, is ", spec.l2));
}

absl::StatusOr<std::unique_ptr<Model>> MakeCosmoflow(const CosmoflowSpec& spec, Backend* backend) {
  RETURN_IF_ERROR(Validate(spec));
  Shape shape = {spec.batch, spec.cube_edge, spec.cube_edge, spec.cube_edge, kCosmoflowChannels};
  auto model = std::make_unique<Model>(backend, shape);
  const auto add = [&](std::unique_ptr<Layer> layer) {
    shape = layer->output();
    model->Add(std::move(layer));
  };
  add(std::make_unique<Log1pLayer>(backend, shape));
  for (int block = 0; block < kBlocks; ++block) {
    const ConvPoolLayer::Options options = {.name = absl::StrCat("conv", block + 1),
                                            .kernel = spec.kernel,
                                            .filters = spec.base_filters << block,
                                            .slope = kLeakySlope};
    add(std::make_unique<ConvPoolLayer>(backend, shape, options));
  }
  const Activation leaky = {Activation::Kind::kLeakyRelu, kLeakySlope};
  const Activation tanh = {Activation::Kind::kScaledTanh, kOutputScale};
  const DenseLayer::Options dense[] = {
      {"fc1", 128, leaky, spec.dropout, 0, spec.l2},
      {"fc2", 64, leaky, spec.dropout, 1, spec.l2},
      {.name = "fc3", .units = kCosmoflowOutputs, .activation = tanh}};
  for (const DenseLayer::Options& options : dense)
    add(std::make_unique<DenseLayer>(backend, shape, options));
  RETURN_IF_ERROR(model->Commit());
  return model;
}

}  // namespace assay
