#include "worker/engine/map_layers.h"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"

namespace assay {
namespace {

// A leaky ReLU that does not bend: bias without activation.
constexpr Activation kIdentity = {Activation::Kind::kLeakyRelu, 1};

absl::Status NeedMaps(Backend* backend) {
  if (backend->maps() != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "backend ", backend->name(), " has no operations on maps; use cuda, onednn or reference"));
}

Conv2dShape ShapeOf(const Shape& input, const Conv2dLayer::Options& options) {
  return {.batch = input[0],
          .height = input[1],
          .width = input[2],
          .in_channels = input[3],
          .out_channels = options.filters,
          .kernel = options.kernel,
          .stride = options.stride,
          .dilation = options.dilation,
          .groups = options.groups};
}

void SetInit(KernelInit init, int64_t fan_in, Parameter* kernel) {
  const double fan = static_cast<double>(fan_in);
  switch (init) {
    case KernelInit::kKaiming:
      kernel->init_stddev = std::sqrt(2 / fan);
      return;
    case KernelInit::kTorch:
      kernel->init_limit = 1 / std::sqrt(fan);
      return;
  }
}

int64_t MultiplyAdds(const Conv2dShape& shape) {
  return shape.y().elements() * (shape.w().elements() / shape.out_channels);
}

}  // namespace

Conv2dLayer::Conv2dLayer(Backend* backend, const Shape& input, const Options& options)
    : backend_(backend), shape_(ShapeOf(input, options)) {
  kernel_.name = absl::StrCat(options.name, "/kernel");
  kernel_.shape = shape_.w();
  SetInit(options.init, shape_.in_channels / shape_.groups * shape_.kernel * shape_.kernel,
          &kernel_);
}

absl::Status Conv2dLayer::Plan(LayerMemory memory, bool wants_dx) {
  RETURN_IF_ERROR(NeedMaps(backend_));
  if (convolution_ == nullptr) {
    ASSIGN_OR_RETURN(convolution_, backend_->maps()->MakeConvolution2d(shape_));
  }
  memory.ReserveResult(shape_.y(), backend_->map_type(), /*is_read_backward=*/false, &y_);
  if (wants_dx) memory.ReserveGradient(shape_.x(), backend_->map_type(), &dx_);
  return absl::OkStatus();
}

LayerCost Conv2dLayer::Cost(const Shape& input, bool wants_dx) {
  return ProductCost(this, input, wants_dx, MultiplyAdds(shape_));
}

Tensor Conv2dLayer::Forward(const Tensor& x, const Pass&) {
  convolution_->Forward(x, kernel_.value, y_);
  return y_;
}

void Conv2dLayer::ForwardNormalised(const Tensor& x, const Normalisation& n, const Tensor& y) {
  if (convolution_->ForwardNormalised(x, kernel_.value, n, y)) return;
  convolution_->Forward(x, kernel_.value, y);
  backend_->maps()->Normalise(n, y, y);
}

Tensor Conv2dLayer::Backward(const Tensor& x, const Tensor& dy, const Pass& pass) {
  convolution_->BackwardWeights(x, dy, kernel_.gradient);
  if (!pass.wants_dx) return {};
  convolution_->BackwardData(dy, kernel_.value, dx_);
  return dx_;
}

Deconv2dLayer::Deconv2dLayer(Backend* backend, const Shape& input, std::string name,
                             int64_t filters)
    : backend_(backend),
      shape_{.batch = input[0],
             .height = 2 * input[1],
             .width = 2 * input[2],
             .in_channels = filters,
             .out_channels = input[3],
             .kernel = 3,
             .stride = 2} {
  kernel_.name = absl::StrCat(name, "/kernel");
  kernel_.shape = shape_.w();
  // PyTorch takes the fan-in from the second dimension of its weights, here the filters.
  SetInit(KernelInit::kTorch, filters * 9, &kernel_);
}

absl::Status Deconv2dLayer::Plan(LayerMemory memory, bool wants_dx) {
  RETURN_IF_ERROR(NeedMaps(backend_));
  if (convolution_ == nullptr) {
    ASSIGN_OR_RETURN(convolution_, backend_->maps()->MakeConvolution2d(shape_));
  }
  memory.ReserveResult(shape_.x(), backend_->map_type(), /*is_read_backward=*/false, &y_);
  if (wants_dx) memory.ReserveGradient(shape_.y(), backend_->map_type(), &dx_);
  return absl::OkStatus();
}

LayerCost Deconv2dLayer::Cost(const Shape& input, bool wants_dx) {
  return ProductCost(this, input, wants_dx, MultiplyAdds(shape_));
}

Tensor Deconv2dLayer::Forward(const Tensor& x, const Pass&) {
  convolution_->BackwardData(x, kernel_.value, y_);
  return y_;
}

void Deconv2dLayer::ForwardNormalised(const Tensor& x, const Normalisation& n, const Tensor& y) {
  if (convolution_->BackwardDataNormalised(x, kernel_.value, n, y)) return;
  convolution_->BackwardData(x, kernel_.value, y);
  backend_->maps()->Normalise(n, y, y);
}

Tensor Deconv2dLayer::Backward(const Tensor& x, const Tensor& dy, const Pass& pass) {
  convolution_->BackwardWeights(dy, x, kernel_.gradient);
  if (!pass.wants_dx) return {};
  convolution_->Forward(dy, kernel_.value, dx_);
  return dx_;
}

BiasLayer::BiasLayer(Backend* backend, const Shape& input, std::string name, int64_t fan_in)
    : backend_(backend), shape_(input) {
  bias_.name = absl::StrCat(name, "/bias");
  bias_.shape = {input[3]};
  SetInit(KernelInit::kTorch, fan_in, &bias_);
}

absl::Status BiasLayer::Plan(LayerMemory, bool) {
  return absl::OkStatus();
}

Shape BiasLayer::Rows() const {
  return {shape_.elements() / shape_[3], shape_[3]};
}

Tensor BiasLayer::Forward(const Tensor& x, const Pass&) {
  backend_->ActivationForward(x.Reshaped(Rows()), bias_.value, kIdentity);
  return x;
}

Tensor BiasLayer::Backward(const Tensor& x, const Tensor& dy, const Pass&) {
  backend_->ActivationBackward(x.Reshaped(Rows()), kIdentity, dy.Reshaped(Rows()), bias_.gradient);
  return dy;
}

BatchNormLayer::BatchNormLayer(Backend* backend, const Shape& input, const Options& options)
    : backend_(backend), options_(options), shape_(input) {
  const Shape channels = {input[3]};
  scale_ = {.name = absl::StrCat(options.name, "/scale"), .shape = channels, .init_value = 1};
  shift_ = {.name = absl::StrCat(options.name, "/shift"), .shape = channels};
  running_mean_ = {.name = absl::StrCat(options.name, "/running_mean"), .shape = channels};
  running_variance_ = {
      .name = absl::StrCat(options.name, "/running_variance"), .shape = channels, .init_value = 1};
}

absl::Status BatchNormLayer::Plan(LayerMemory memory, bool) {
  RETURN_IF_ERROR(NeedMaps(backend_));
  const DType real = backend_->real();
  memory.ReserveResult(shape_, backend_->map_type(), /*is_read_backward=*/options_.relu, &y_);
  if (!memory.has_backward) return absl::OkStatus();
  for (Tensor* statistic : {&mean_, &variance_, &local_mean_, &square_})
    memory.activations->Reserve(scale_.shape, real, statistic);
  memory.activations->Reserve(Shape{2, shape_[3]}, real, &group_sums_);
  return absl::OkStatus();
}

Normalisation BatchNormLayer::With(const Tensor& mean, const Tensor& variance) const {
  return {.mean = mean,
          .variance = variance,
          .scale = scale_.value,
          .shift = shift_.value,
          .epsilon = options_.epsilon,
          .relu = options_.relu};
}

// Through the host's memory, unless the ranks' devices do it themselves.
void BatchNormLayer::Average(GroupMean* group, const Tensor& values) {
  if (backend_->is_host_memory() || group->is_on_device()) {
    group->Average(values);
    return;
  }
  std::vector<std::byte> copy(values.bytes());
  const Tensor on_host = {copy.data(), values.shape, values.dtype};
  backend_->CopyOut(values, on_host.data);
  group->Average(on_host);
  backend_->CopyIn(on_host.data, values);
}

// The group's variance is the mean of its ranks' variances plus the variance of their means; taken
// so, nothing cancels.
void BatchNormLayer::AverageMoments(GroupMean* group) {
  MapOperations* maps = backend_->maps();
  backend_->Copy(mean_, local_mean_);
  Average(group, mean_);
  maps->Combine(-1, mean_, 1, local_mean_);
  backend_->Copy(local_mean_, square_);
  backend_->Multiply(local_mean_, square_);
  maps->Combine(1, square_, 1, variance_);
  Average(group, variance_);
}

void BatchNormLayer::MoveRunning(const GroupMean* group) {
  const int64_t ranks = group == nullptr ? 1 : group->size();
  const double count = static_cast<double>(ranks * shape_.elements() / shape_[3]);
  backend_->maps()->MoveRunning({.mean = mean_,
                                 .variance = variance_,
                                 .running_mean = running_mean_.value,
                                 .running_variance = running_variance_.value,
                                 .rate = options_.momentum,
                                 .unbiased = count > 1 ? count / (count - 1) : 1});
}

void BatchNormLayer::TakeMoments(const Tensor& x, GroupMean* group) {
  backend_->maps()->ChannelMoments(x, mean_, variance_);
  if (group != nullptr) AverageMoments(group);
  MoveRunning(group);
}

Tensor BatchNormLayer::Forward(const Tensor& x, const Pass& pass) {
  if (!pass.is_training) {
    backend_->maps()->Normalise(WithRunning(), x, y_);
    return y_;
  }
  if (!pass.is_repeated) TakeMoments(x, pass.group);
  backend_->maps()->Normalise(With(mean_, variance_), x, y_);
  return y_;
}

AddingLayer* BatchNormLayer::adding() {
  return !options_.relu && backend_->maps()->adds_in_passing() ? this : nullptr;
}

void BatchNormLayer::ForwardAdded(const Tensor& x, const Pass& pass, const Addition& addition) {
  if (!pass.is_repeated) TakeMoments(x, pass.group);
  Normalisation n = With(mean_, variance_);
  n.relu = addition.relu;
  backend_->maps()->NormaliseAdd(n, x, addition.other, addition.y);
}

Tensor BatchNormLayer::Backward(const Tensor& x, const Tensor& dy, const Pass& pass) {
  MapOperations* maps = backend_->maps();
  const Normalisation n = With(mean_, variance_);
  maps->NormaliseSums(n, x, y_, dy, scale_.gradient, shift_.gradient);
  ChannelSums sums = {scale_.gradient, shift_.gradient,
                      static_cast<double>(shape_[3]) / static_cast<double>(shape_.elements())};
  if (pass.group != nullptr) {
    sums.scale = group_sums_.Part(0, scale_.shape);
    sums.shift = group_sums_.Part(shape_[3], shift_.shape);
    backend_->Copy(scale_.gradient, sums.scale);
    backend_->Copy(shift_.gradient, sums.shift);
    Average(pass.group, group_sums_);  // both at once: ranks wait for each other once
  }
  maps->NormaliseBackward(n, x, sums, dy);
  return dy;
}

ConvNormLayer::ConvNormLayer(const Shape& input, std::unique_ptr<MapConvolutionLayer> convolution,
                             std::unique_ptr<BatchNormLayer> norm)
    : SequenceLayer(input), convolution_(convolution.get()), norm_(norm.get()) {
  Add(std::move(convolution));
  Add(std::move(norm));
}

absl::Status ConvNormLayer::Plan(LayerMemory memory, bool wants_dx) {
  if (memory.has_backward) {
    RETURN_IF_ERROR(SequenceLayer::Plan(memory, wants_dx));
  } else {
    // Both of the time steps are the normalisation's: its result is there from the first one on.
    RETURN_IF_ERROR(norm_->Plan(memory, wants_dx));
    memory.has_result = false;
    RETURN_IF_ERROR(convolution_->Plan(memory, wants_dx));
  }
  convolution_->PlanNormalised(norm_->has_relu());
  return absl::OkStatus();
}

Tensor ConvNormLayer::Forward(const Tensor& x, const Pass& pass) {
  if (pass.is_training) return SequenceLayer::Forward(x, pass);
  convolution_->ForwardNormalised(x, norm_->WithRunning(), norm_->result());
  return norm_->result();
}

AffineReluLayer::AffineReluLayer(Backend* backend, const Shape& input, const std::string& name)
    : backend_(backend), shape_(input) {
  weight_ = {.name = absl::StrCat(name, "/weight"), .shape = {input[3]}, .init_value = 1};
  bias_ = {.name = absl::StrCat(name, "/bias"), .shape = {input[3]}};
}

absl::Status AffineReluLayer::Plan(LayerMemory memory, bool) {
  RETURN_IF_ERROR(NeedMaps(backend_));
  memory.ReserveResult(shape_, backend_->map_type(), /*is_read_backward=*/true, &y_);
  memory.activations->Reserve(weight_.shape, backend_->real(), &zeros_);
  return absl::OkStatus();
}

Normalisation AffineReluLayer::AsNormalisation() const {
  return {.mean = zeros_,
          .variance = zeros_,
          .scale = weight_.value,
          .shift = bias_.value,
          .epsilon = 1,
          .relu = true};
}

Tensor AffineReluLayer::Forward(const Tensor& x, const Pass&) {
  backend_->maps()->Normalise(AsNormalisation(), x, y_);
  return y_;
}

Tensor AffineReluLayer::Backward(const Tensor& x, const Tensor& dy, const Pass&) {
  const Normalisation n = AsNormalisation();
  backend_->maps()->NormaliseSums(n, x, y_, dy, weight_.gradient, bias_.gradient);
  backend_->maps()->NormaliseBackward(n, x, {weight_.gradient, bias_.gradient, 0}, dy);
  return dy;
}

absl::Status GlobalMeanLayer::Plan(LayerMemory memory, bool wants_dx) {
  RETURN_IF_ERROR(NeedMaps(backend_));
  memory.ReserveResult(output(), backend_->map_type(), /*is_read_backward=*/false, &y_);
  if (wants_dx) memory.ReserveGradient(input_, backend_->map_type(), &dx_);
  return absl::OkStatus();
}

Tensor GlobalMeanLayer::Forward(const Tensor& x, const Pass&) {
  backend_->maps()->SpatialSum(x, factor(), y_);
  return y_;
}

Tensor GlobalMeanLayer::Backward(const Tensor&, const Tensor& dy, const Pass&) {
  if (dx_.data != nullptr) backend_->maps()->SpatialSpread(dy, factor(), dx_);
  return dx_;
}

absl::Status SpreadLayer::Plan(LayerMemory memory, bool wants_dx) {
  RETURN_IF_ERROR(NeedMaps(backend_));
  memory.ReserveResult(output_, backend_->map_type(), /*is_read_backward=*/false, &y_);
  if (wants_dx) memory.ReserveGradient(input_, backend_->map_type(), &dx_);
  return absl::OkStatus();
}

Tensor SpreadLayer::Forward(const Tensor& x, const Pass&) {
  backend_->maps()->SpatialSpread(x, 1, y_);
  return y_;
}

Tensor SpreadLayer::Backward(const Tensor&, const Tensor& dy, const Pass&) {
  if (dx_.data != nullptr) backend_->maps()->SpatialSum(dy, 1, dx_);
  return dx_;
}

absl::Status ConvertLayer::Plan(LayerMemory memory, bool wants_dx) {
  RETURN_IF_ERROR(NeedMaps(backend_));
  memory.ReserveResult(shape_, to_, /*is_read_backward=*/false, &y_);
  if (wants_dx) memory.ReserveGradient(shape_, from_, &dx_);
  return absl::OkStatus();
}

Tensor ConvertLayer::Forward(const Tensor& x, const Pass&) {
  backend_->maps()->Convert(x, y_);
  return y_;
}

Tensor ConvertLayer::Backward(const Tensor&, const Tensor& dy, const Pass&) {
  if (dx_.data != nullptr) backend_->maps()->Convert(dy, dx_);
  return dx_;
}

}  // namespace assay
