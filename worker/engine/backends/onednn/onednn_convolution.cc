#include "worker/engine/backends/onednn/onednn_convolution.h"

#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/onednn/onednn_error.h"

namespace assay {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

dnnl::memory::dims Dims(const std::array<int64_t, 3>& values) {
  return {values.begin(), values.end()};
}

// oneDNN names dimensions (N, C, D, H, W) whatever the order in memory.
Desc ActivationDesc(const Shape& shape) {
  return Desc({shape[0], shape[4], shape[1], shape[2], shape[3]}, kFloat, Tag::ndhwc);
}

Desc WeightsDesc(const ConvShape& shape, Tag tag) {
  const int64_t k = shape.kernel;
  return Desc({shape.out_channels, shape.in_channels, k, k, k}, kFloat, tag);
}

}  // namespace

absl::StatusOr<std::unique_ptr<OnednnConvolution>> OnednnConvolution::Make(
    const ConvShape& shape, const dnnl::engine& engine, const dnnl::stream& stream) {
  std::unique_ptr<OnednnConvolution> convolution;
  RETURN_IF_ERROR(CatchOnednn(
      "convolution", [&] { convolution.reset(new OnednnConvolution(shape, engine, stream)); }));
  return convolution;
}

OnednnConvolution::OnednnConvolution(const ConvShape& shape, const dnnl::engine& engine,
                                     const dnnl::stream& stream)
    : shape_(shape), stream_(stream) {
  const Desc x = ActivationDesc(shape.x()), y = ActivationDesc(shape.y());
  const Desc any = WeightsDesc(shape, Tag::any), plain = WeightsDesc(shape, Tag::dhwio);
  const dnnl::memory::dims strides = {1, 1, 1};
  const dnnl::memory::dims before = Dims(shape.pad_before), after = Dims(shape.pad_after);

  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, kDirect, x, any, y, strides, before, after}, engine);
  const dnnl::convolution_backward_data::primitive_desc backward_data(
      {kDirect, x, any, y, strides, before, after}, engine, forward);
  const dnnl::convolution_backward_weights::primitive_desc backward_weights(
      {kDirect, x, any, y, strides, before, after}, engine, forward);
  forward_ = dnnl::convolution_forward(forward);
  backward_data_ = dnnl::convolution_backward_data(backward_data);
  backward_weights_ = dnnl::convolution_backward_weights(backward_weights);

  x_ = dnnl::memory(x, engine, nullptr);
  w_ = dnnl::memory(plain, engine, nullptr);
  y_ = dnnl::memory(y, engine, nullptr);
  const auto pack = [&](const Desc& packed) {
    return PackedWeights{dnnl::memory(packed, engine),
                         dnnl::reorder({engine, plain, engine, packed})};
  };
  forward_weights_ = pack(forward.weights_desc());
  backward_data_weights_ = pack(backward_data.weights_desc());
  const Desc gradients = backward_weights.diff_weights_desc();
  weight_gradients_ = {dnnl::memory(gradients, engine),
                       dnnl::reorder({engine, gradients, engine, plain})};
}

void OnednnConvolution::WeightsChanged() {
  forward_weights_.is_current = false;
  backward_data_weights_.is_current = false;
}

void OnednnConvolution::Pack(const Tensor& w, PackedWeights* packed) {
  if (packed->is_current) return;
  w_.set_data_handle(w.As<float>());
  packed->reorder.execute(stream_, w_, packed->memory);
  packed->is_current = true;
}

void OnednnConvolution::Forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
  MustOnednn("convolution forward", [&] {
    Pack(w, &forward_weights_);
    x_.set_data_handle(x.As<float>());
    y_.set_data_handle(y.As<float>());
    forward_.execute(
        stream_,
        {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, forward_weights_.memory}, {DNNL_ARG_DST, y_}});
  });
}

void OnednnConvolution::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  CHECK(dx.shape == shape_.x() && w.shape == shape_.w() && dy.shape == shape_.y());
  MustOnednn("convolution backward data", [&] {
    Pack(w, &backward_data_weights_);
    x_.set_data_handle(dx.As<float>());
    y_.set_data_handle(dy.As<float>());
    backward_data_.execute(stream_, {{DNNL_ARG_DIFF_SRC, x_},
                                     {DNNL_ARG_WEIGHTS, backward_data_weights_.memory},
                                     {DNNL_ARG_DIFF_DST, y_}});
  });
}

void OnednnConvolution::BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) {
  CHECK(x.shape == shape_.x() && dw.shape == shape_.w() && dy.shape == shape_.y());
  MustOnednn("convolution backward weights", [&] {
    x_.set_data_handle(x.As<float>());
    y_.set_data_handle(dy.As<float>());
    backward_weights_.execute(stream_, {{DNNL_ARG_SRC, x_},
                                        {DNNL_ARG_DIFF_WEIGHTS, weight_gradients_.memory},
                                        {DNNL_ARG_DIFF_DST, y_}});
    w_.set_data_handle(dw.As<float>());
    weight_gradients_.reorder.execute(stream_, weight_gradients_.memory, w_);
  });
}

}  // namespace assay
