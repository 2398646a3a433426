#include "worker/engine/layers.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"

namespace assay {

double GlorotLimit(int64_t fan_in, int64_t fan_out) {
  return std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
}

bool IsTrained(Layer* layer) {
  const std::vector<Parameter*> parameters = layer->parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter* parameter) { return !parameter->is_frozen; });
}

std::vector<LayerTimes> TimesOfSequence(std::span<const std::unique_ptr<Layer>> layers,
                                        const LayerTimes& outer, bool has_backward) {
  std::vector<LayerTimes> times(layers.size(), outer);
  const size_t last = layers.size() - 1;  // unused where there is none
  for (size_t i = 1; i < layers.size(); ++i) {
    times[i].forward = times[i - 1].forward + layers[i - 1]->time_steps();
    times[last - i].backward = times[last - i + 1].backward + layers[last - i + 1]->time_steps();
  }
  for (size_t i = layers.size(); i-- > 1;) {  // the reader of each result is known before it
    const int64_t start = has_backward ? times[i].backward : times[i].forward;
    const int64_t until = start + layers[i]->time_steps() - 1;
    const bool passes_on = layers[i]->in_place().forward;
    times[i - 1].result_until = passes_on ? std::max(until, times[i].result_until) : until;
  }
  for (size_t i = 1; i < layers.size(); ++i) {
    const int64_t until = times[i - 1].backward + layers[i - 1]->time_steps() - 1;
    const bool passes_on = layers[i - 1]->in_place().backward;
    times[i].gradient_until = passes_on ? std::max(until, times[i - 1].gradient_until) : until;
  }
  return times;
}

LayerTraffic Layer::Traffic(const Shape& input, bool wants_dx) {
  int64_t weights = 0;
  for (const Parameter* parameter : parameters())
    weights += parameter->shape.elements();
  const int64_t x = input.elements(), y = output().elements();
  const bool is_trained = IsTrained(this);
  int64_t backward = wants_dx || is_trained ? y : 0;
  if (is_trained) backward += x + weights;
  if (wants_dx) backward += x + weights;
  return {.forward = static_cast<double>(x + weights + y),
          .backward = static_cast<double>(backward)};
}

LayerTraffic TrafficOfSequence(std::span<const std::unique_ptr<Layer>> layers, Shape input,
                               bool wants_dx) {
  LayerTraffic sum;
  for (const std::unique_ptr<Layer>& layer : layers) {
    sum += layer->Traffic(input, wants_dx);
    input = layer->output();
    wants_dx = wants_dx || IsTrained(layer.get());
  }
  return sum;
}

size_t LimitSequence(std::span<const std::unique_ptr<Layer>> layers, bool wants_dx) {
  size_t needless = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i]->LimitBackward(wants_dx);
    wants_dx = wants_dx || IsTrained(layers[i].get());
    if (!wants_dx) needless = i + 1;
  }
  return needless;
}

absl::Status Log1pLayer::Plan(LayerMemory memory, bool wants_dx) {
  CHECK(!wants_dx) << "counts have no gradient";
  memory.activations->Reserve(shape_, backend_->real(), &y_);
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
  ConvShape conv =
      SameConv(input[0], {input[1], input[2], input[3]}, input[4], options.filters, options.kernel);
  for (size_t axis = 0; axis < 3; ++axis)
    if (options.has_halo[axis]) conv.pad_before[axis] = conv.pad_after[axis] = 0;
  return conv;
}

}  // namespace

ConvPoolLayer::ConvPoolLayer(Backend* backend, const Shape& input, const Options& options)
    : backend_(backend),
      shape_{ConvOf(input, options), options.slope},
      kernel_{.name = absl::StrCat(options.name, "/kernel"), .shape = shape_.conv.w()},
      bias_{.name = absl::StrCat(options.name, "/bias"), .shape = {options.filters}} {
  const int64_t receptive = options.kernel * options.kernel * options.kernel;
  kernel_.init_limit = GlorotLimit(receptive * input[4], receptive * options.filters);
}

absl::Status ConvPoolLayer::Plan(LayerMemory memory, bool wants_dx) {
  ConvPoolShape shape = shape_;
  shape.wants_dx = wants_dx;
  ASSIGN_OR_RETURN(block_, backend_->MakeConvPool(shape));
  memory.activations->Reserve(output(), backend_->real(), &y_);
  memory.activations->Reserve(output(), DType::kUint8, &code_);
  if (wants_dx) memory.activations->Reserve(shape_.conv.x(), backend_->real(), &dx_);
  memory.WantScratch(block_->scratch_bytes());
  return absl::OkStatus();
}

LayerFlops ConvPoolLayer::flops() const {
  const ConvShape& conv = shape_.conv;
  return ProductFlops(conv.y().elements() * (conv.w().elements() / conv.out_channels), kernel_,
                      dx_.data != nullptr);
}

ConvPoolTensors ConvPoolLayer::Tensors(const Tensor& x, const Pass& pass) const {
  return {x, kernel_.value, bias_.value, y_, code_, pass.scratch};
}

Tensor ConvPoolLayer::Forward(const Tensor& x, const Pass& pass) {
  block_->Forward(Tensors(x, pass));
  return y_;
}

Tensor ConvPoolLayer::Backward(const Tensor& x, const Tensor& dy, const Pass& pass) {
  block_->Backward(Tensors(x, pass), dy.Reshaped(output()),
                   {kernel_.gradient, bias_.gradient, dx_});
  return dx_;
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
  memory.activations->Reserve(output(), real, &y_);
  if (options_.dropout > 0) {
    memory.activations->Reserve(output(), real, &activated_);
    memory.activations->Reserve(output(), real, &scale_);
  }
  if (wants_dx) memory.activations->Reserve({batch_, inputs_}, real, &dx_);
  return absl::OkStatus();
}

LayerFlops DenseLayer::flops() const {
  return ProductFlops(batch_ * inputs_ * options_.units, kernel_, dx_.data != nullptr);
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
  if (dx_.data != nullptr) backend_->DenseBackwardData(dy, kernel_.value, dx_);
  return dx_;
}

}  // namespace assay
