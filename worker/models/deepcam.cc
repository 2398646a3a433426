#include "worker/models/deepcam.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "worker/engine/branch_layer.h"
#include "worker/engine/map_layers.h"

namespace assay {
namespace {

using Sequence = std::unique_ptr<SequenceLayer>;
using Join = BranchLayer::Join;

constexpr int64_t kReferenceBase = 32;
constexpr int64_t kMaxBatch = 256;  // bounds on what a spec may ask for
constexpr int64_t kMaxExtent = 4096;
constexpr int64_t kMaxFilters = 128;
constexpr int64_t kMaxBlocks = 64;

// Builds a list of layers, each from the shape that the one before leaves.
class Builder {
 public:
  Builder(Backend* backend, const DeepcamSpec& spec, const Shape& input)
      : backend_(backend), spec_(spec), shape_(input) {
    sequence_ = std::make_unique<SequenceLayer>(input);
  }

  // The reference's width, scaled to this spec's.
  int64_t Filters(int64_t reference) const {
    return std::max(int64_t{1}, reference * spec_.base_filters / kReferenceBase);
  }
  const Shape& shape() const { return shape_; }
  Builder Branch() const { return Builder(backend_, spec_, shape_); }
  Sequence Take() { return std::move(sequence_); }

  Builder& Add(std::unique_ptr<Layer> layer) {
    shape_ = layer->output();
    sequence_->Add(std::move(layer));
    return *this;
  }

  Builder& Conv(const Conv2dLayer::Options& options) {
    return Add(std::make_unique<Conv2dLayer>(backend_, shape_, options));
  }

  // Convolution, batch normalisation, ReLU if asked. `name`: of the normalisation.
  Builder& ConvNorm(const Conv2dLayer::Options& options, const std::string& name, bool relu) {
    return Normalised(std::make_unique<Conv2dLayer>(backend_, shape_, options), name, relu);
  }
  Builder& ConvNormRelu(const Conv2dLayer::Options& options) {
    return ConvNorm(options, options.name, true);
  }

  // Depthwise 3x3, then pointwise; nothing in between.
  struct Separable {
    std::string name;
    int64_t filters;
    int64_t stride = 1;
    int64_t dilation = 1;
  };
  Builder& SeparableConv(const Separable& s) { return Depthwise(s).Conv(Pointwise(s)); }
  Builder& SeparableNorm(const Separable& s, bool relu) {
    return Depthwise(s).ConvNorm(Pointwise(s), s.name, relu);
  }

  Builder& DeconvNormRelu(const std::string& name, int64_t filters) {
    return Normalised(std::make_unique<Deconv2dLayer>(backend_, shape_, name, filters), name, true);
  }

  Builder& Branches(Join join, bool relu, std::vector<Sequence> branches) {
    return Add(std::make_unique<BranchLayer>(backend_, shape_, join, relu, std::move(branches)));
  }

  // What crosses the model's borders is real.
  Builder& Convert(DType from, DType to) {
    return from == to ? *this : Add(std::make_unique<ConvertLayer>(backend_, shape_, from, to));
  }

  Backend* backend() const { return backend_; }

 private:
  Builder& Normalised(std::unique_ptr<MapConvolutionLayer> convolution, const std::string& name,
                      bool relu) {
    auto norm = std::make_unique<BatchNormLayer>(
        backend_, convolution->output(),
        BatchNormLayer::Options{.name = name + "/norm", .relu = relu});
    return Add(std::make_unique<ConvNormLayer>(shape_, std::move(convolution), std::move(norm)));
  }

  Builder& Depthwise(const Separable& s) {
    return Conv({.name = s.name + "/depthwise",
                 .filters = shape_[3],
                 .stride = s.stride,
                 .dilation = s.dilation,
                 .groups = shape_[3]});
  }

  static Conv2dLayer::Options Pointwise(const Separable& s) {
    return {.name = s.name + "/pointwise", .filters = s.filters, .kernel = 1};
  }

  Backend* const backend_;
  const DeepcamSpec& spec_;
  Shape shape_;
  Sequence sequence_;
};

// A block whose skip is a convolution: blocks 1, 2, 3 and 20. Two separable convolutions and a
// third that may be strided and has no normalisation of its own.
struct EdgeBlock {
  std::string name;
  int64_t filters;  // of the result
  int64_t inner;    // of the first convolution
  int64_t stride;
  bool relu;  // after the sum
};

void AddEdgeBlock(const EdgeBlock& block, Builder* net) {
  Builder main = net->Branch(), skip = net->Branch();
  main.SeparableNorm({.name = block.name + "/conv1", .filters = block.inner}, true)
      .SeparableNorm({.name = block.name + "/conv2", .filters = block.filters}, false)
      .SeparableConv(
          {.name = block.name + "/conv3", .filters = block.filters, .stride = block.stride});
  skip.ConvNorm(
      {.name = block.name + "/skip", .filters = block.filters, .kernel = 1, .stride = block.stride},
      block.name + "/skip", false);
  std::vector<Sequence> branches;
  branches.push_back(main.Take());
  branches.push_back(skip.Take());
  net->Branches(Join::kSum, block.relu, std::move(branches));
}

// Blocks 4 to 19: three separable convolutions around an identity.
void AddMiddleBlock(const std::string& name, Builder* net) {
  Builder main = net->Branch();
  const int64_t filters = net->shape()[3];
  for (int i = 1; i <= 3; ++i) {
    const std::string conv = absl::StrCat(name, "/conv", i);
    main.SeparableNorm({.name = conv, .filters = filters}, i < 3);
  }
  std::vector<Sequence> branches;
  branches.push_back(main.Take());
  branches.push_back(net->Branch().Take());
  net->Branches(Join::kSum, true, std::move(branches));
}

// Atrous spatial pyramid pooling: four convolutions that look ever further and the mean of the map.
void AddPyramid(Builder* net) {
  const int64_t filters = net->Filters(256), height = net->shape()[1], width = net->shape()[2];
  std::vector<Sequence> branches;
  for (const int64_t dilation : {1, 6, 12, 18}) {
    Builder branch = net->Branch();
    branch.ConvNormRelu({.name = absl::StrCat("pyramid/dilation", dilation),
                         .filters = filters,
                         .kernel = dilation == 1 ? 1 : 3,
                         .dilation = dilation});
    branches.push_back(branch.Take());
  }
  Builder mean = net->Branch();
  mean.Add(std::make_unique<GlobalMeanLayer>(mean.backend(), mean.shape()));
  mean.Conv({.name = "pyramid/mean", .filters = filters, .kernel = 1, .init = KernelInit::kTorch});
  mean.Add(std::make_unique<AffineReluLayer>(mean.backend(), mean.shape(), "pyramid/mean/affine"));
  mean.Add(std::make_unique<SpreadLayer>(mean.backend(), mean.shape(), height, width));
  branches.push_back(mean.Take());
  net->Branches(Join::kConcat, false, std::move(branches));
  net->ConvNormRelu(
      {.name = "pyramid/fuse", .filters = filters, .kernel = 1, .init = KernelInit::kTorch});
}

// From block 1's result to the map that is joined with it: blocks 2 to 20, pyramid, two doublings.
Sequence DeepPath(const DeepcamSpec& spec, const Builder& at) {
  Builder net = at.Branch();
  AddEdgeBlock({"block2", net.Filters(256), net.Filters(256), 2, true}, &net);
  AddEdgeBlock({"block3", net.Filters(728), net.Filters(728), 2, true}, &net);
  for (int64_t i = 0; i < spec.middle_blocks; ++i)
    AddMiddleBlock(absl::StrCat("block", i + 4), &net);
  AddEdgeBlock({absl::StrCat("block", spec.middle_blocks + 4), net.Filters(1024), net.Filters(728),
                1, false},
               &net);
  int index = 3;
  for (const int64_t filters : {1536, 1536, 2048}) {
    const std::string name = absl::StrCat("conv", index++);
    net.SeparableNorm({.name = name, .filters = net.Filters(filters), .dilation = 2}, true);
  }
  AddPyramid(&net);
  net.DeconvNormRelu("decoder/deconv1a", net.Filters(256));
  net.DeconvNormRelu("decoder/deconv1b", net.Filters(256));
  return net.Take();
}

void AddDecoder(Builder* net) {
  const int64_t filters = net->Filters(256);
  const auto conv = [filters](const std::string& name, int64_t kernel) {
    return Conv2dLayer::Options{
        .name = name, .filters = filters, .kernel = kernel, .init = KernelInit::kTorch};
  };
  net->ConvNormRelu(conv("decoder/conv1", 3)).ConvNormRelu(conv("decoder/conv2", 3));
  net->Conv(conv("decoder/conv3", 1));
  net->Add(std::make_unique<BiasLayer>(net->backend(), net->shape(), "decoder/conv3", filters));
  net->DeconvNormRelu("decoder/deconv2", filters);
  net->Add(std::make_unique<Deconv2dLayer>(net->backend(), net->shape(), "decoder/last",
                                           kDeepcamClasses));
}

absl::Status Demand(bool condition, absl::string_view field, absl::string_view allowed) {
  if (condition) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("deepcam: ", field, " must be ", allowed));
}

absl::Status DemandRange(absl::string_view field, int64_t value, int64_t low, int64_t high) {
  return Demand(value >= low && value <= high, field,
                absl::StrCat("in ", low, "..", high, ", is ", value));
}

absl::Status DemandExtent(absl::string_view field, int64_t value) {
  return Demand(value >= 16 && value <= kMaxExtent && value % 16 == 0, field,
                absl::StrCat("a multiple of 16 up to ", kMaxExtent, ", is ", value));
}

}  // namespace

std::vector<double> DeepcamClassWeights() {
  std::vector<double> weights;
  for (const double frequency : {0.986267818390377, 0.0004578708870701058, 0.01327431072255291})
    weights.push_back(std::pow(frequency, -1.0 / 8));
  return weights;
}

absl::Status Validate(const DeepcamSpec& spec) {
  RETURN_IF_ERROR(DemandRange("batch", spec.batch, 1, kMaxBatch));
  RETURN_IF_ERROR(DemandExtent("map_height", spec.height));
  RETURN_IF_ERROR(DemandExtent("map_width", spec.width));
  RETURN_IF_ERROR(DemandRange("base_filter_count", spec.base_filters, 1, kMaxFilters));
  return DemandRange("middle_block_count", spec.middle_blocks, 0, kMaxBlocks);
}

absl::StatusOr<std::unique_ptr<Model>> MakeDeepcam(const DeepcamSpec& spec, Backend* backend,
                                                   const Model* trained, const MemoryLimit& limit) {
  RETURN_IF_ERROR(Validate(spec));
  const Shape input = {spec.batch, spec.height, spec.width, kDeepcamChannels};
  Builder net(backend, spec, input);
  net.Convert(backend->real(), backend->map_type());
  net.ConvNormRelu({.name = "conv1", .filters = net.Filters(32), .stride = 2});
  net.ConvNormRelu({.name = "conv2", .filters = net.Filters(64)});
  AddEdgeBlock({"block1", net.Filters(128), net.Filters(128), 2, true}, &net);
  Builder low_level = net.Branch();
  low_level.ConvNormRelu(
      {.name = "low_level", .filters = net.Filters(48), .kernel = 1, .init = KernelInit::kTorch});
  std::vector<Sequence> branches;
  branches.push_back(DeepPath(spec, net));
  branches.push_back(low_level.Take());
  net.Branches(Join::kConcat, false, std::move(branches));
  AddDecoder(&net);
  net.Convert(backend->map_type(), backend->real());
  auto model = std::make_unique<Model>(backend, input, backend->real());
  model->Add(net.Take());
  RETURN_IF_ERROR(trained == nullptr ? model->Commit(limit) : model->CommitForEvaluation(*trained));
  return model;
}

}  // namespace assay
