#include "worker/engine/layers.h"

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"

namespace assay {

Log1pLayer::Log1pLayer(Backend* backend, const Shape& input, bool is_map)
    : backend_(backend),
      type_(is_map ? backend->map_type() : backend->real()),
      shape_(is_map ? input.WithLast(backend->StoredChannels(input[input.rank() - 1])) : input) {}

absl::Status Log1pLayer::Plan(LayerMemory memory, bool wants_dx) {
  CHECK(!wants_dx) << "counts have no gradient";
  memory.ReserveResult(shape_, type_, /*is_read_backward=*/false, &y_);
  return absl::OkStatus();
}

Tensor Log1pLayer::Forward(const Tensor& x, const Pass&) {
  backend_->Log1p(x, y_);
  return y_;
}

Tensor Log1pLayer::Backward(const Tensor&, const Tensor&, const Pass&) {
  return {};
}

namespace {

ConvShape ConvOf(const Shape& input, const ConvPoolLayer::Options& options) {
  ConvShape conv = SameConv(input[0], {input[1], input[2], input[3]},
                            input[4] - options.empty_channels, options.filters, options.kernel);
  for (size_t axis = 0; axis < 3; ++axis)
    if (options.has_halo[axis]) conv.pad_before[axis] = conv.pad_after[axis] = 0;
  return conv;
}

}  // namespace

ConvPoolLayer::ConvPoolLayer(Backend* backend, const Shape& input, const Options& options)
    : backend_(backend),
      shape_{.conv = ConvOf(input, options),
             .slope = options.slope,
             .is_map = options.reads_map,
             .empty_channels = options.empty_channels},
      result_(options.writes_map ? backend->map_type() : backend->real()),
      kernel_{.name = absl::StrCat(options.name, "/kernel"), .shape = shape_.conv.w()},
      bias_{.name = absl::StrCat(options.name, "/bias"), .shape = {options.filters}} {
  const int64_t receptive = options.kernel * options.kernel * options.kernel;
  kernel_.init_limit =
      GlorotLimit(receptive * shape_.conv.in_channels, receptive * options.filters);
}

absl::Status ConvPoolLayer::Plan(LayerMemory memory, bool wants_dx) {
  ConvPoolShape shape = shape_;
  shape.wants_dx = wants_dx;
  if (block_ == nullptr) {
    ASSIGN_OR_RETURN(block_, backend_->MakeConvPool(shape));
  }
  memory.ReserveResult(output(), result_, /*is_read_backward=*/false, &y_);
  memory.ReserveForBackward(output(), DType::kUint8, &code_);
  if (wants_dx)
    memory.ReserveGradient(shape_.x(), shape_.is_map ? backend_->map_type() : backend_->real(),
                           &dx_);
  memory.WantScratch(block_->scratch_bytes());
  return absl::OkStatus();
}

LayerCost ConvPoolLayer::Cost(const Shape& input, bool wants_dx) {
  const ConvShape& conv = shape_.conv;
  return ProductCost(this, input, wants_dx,
                     conv.y().elements() * (conv.w().elements() / conv.out_channels));
}

ConvPoolTensors ConvPoolLayer::Tensors(const Tensor& x, const Pass& pass) const {
  return {x, kernel_.value, bias_.value, y_, code_, pass.scratch};
}

Tensor ConvPoolLayer::Forward(const Tensor& x, const Pass& pass) {
  block_->Forward(Tensors(x, pass));
  return y_;
}

Tensor ConvPoolLayer::Backward(const Tensor& x, const Tensor& dy, const Pass& pass) {
  const Tensor dx = pass.wants_dx ? dx_ : Tensor{};
  block_->Backward(Tensors(x, pass), dy.Reshaped(output()), {kernel_.gradient, bias_.gradient, dx});
  return dx;
}

DenseLayer::DenseLayer(Backend* backend, const Shape& input, const Options& options)
    : backend_(backend),
      options_(options),
      batch_(input[0]),
      inputs_(input.elements() / input[0]),
      kernel_{.name = absl::StrCat(options.name, "/kernel"),
              .shape = {inputs_, options.units},
              .init_limit = GlorotLimit(inputs_, options.units),
              .l2 = options.l2},
      bias_{.name = absl::StrCat(options.name, "/bias"), .shape = {options.units}} {}

absl::Status DenseLayer::Plan(LayerMemory memory, bool wants_dx) {
  const DType real = backend_->real();
  memory.ReserveResult(output(), real, /*is_read_backward=*/true, &y_);
  if (options_.dropout > 0) {
    memory.ReserveForBackward(output(), real, &activated_);
    memory.ReserveForBackward(output(), real, &scale_);
  }
  if (wants_dx) memory.ReserveGradient({batch_, inputs_}, real, &dx_);
  return absl::OkStatus();
}

LayerCost DenseLayer::Cost(const Shape& input, bool wants_dx) {
  return ProductCost(this, input, wants_dx, batch_ * inputs_ * options_.units);
}

DropoutMask DenseLayer::MaskOf(const Pass& pass) const {
  // One index per (step, layer, element): 2^34 steps, 64 layers, 2^24 elements.
  const uint64_t block = pass.step * 64 + options_.dropout_layer;
  CHECK(options_.dropout_layer < 64 && y_.elements() <= (int64_t{1} << 24));
  return {.stream = pass.dropout, .first_index = block << 24, .rate = options_.dropout};
}

Tensor DenseLayer::Forward(const Tensor& x, const Pass& pass) {
  backend_->DenseForward(x.Reshaped({batch_, inputs_}), kernel_.value, y_);
  backend_->ActivationForward(y_, bias_.value, options_.activation);
  if (pass.is_training && options_.dropout > 0) {
    backend_->Copy(y_, activated_);
    backend_->Dropout(MaskOf(pass), y_, scale_);
  }
  return y_;
}

Tensor DenseLayer::Backward(const Tensor& x, const Tensor& dy, const Pass& pass) {
  const bool had_dropout = pass.is_training && options_.dropout > 0;
  if (had_dropout) backend_->Multiply(scale_, dy);
  const Tensor& activated = had_dropout ? activated_ : y_;
  backend_->ActivationBackward(activated, options_.activation, dy, bias_.gradient);
  backend_->DenseBackwardWeights(x.Reshaped({batch_, inputs_}), dy, kernel_.gradient);
  if (!pass.wants_dx) return {};
  backend_->DenseBackwardData(dy, kernel_.value, dx_);
  return dx_;
}

}  // namespace assay
