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

OnednnConvolution::Geometry GeometryOf(const ConvShape& shape) {
  return {.x_shape = shape.x(),
          .w_shape = shape.w(),
          .y_shape = shape.y(),
          .x = ActivationDesc(shape.x()),
          .y = ActivationDesc(shape.y()),
          .any_w = WeightsDesc(shape, Tag::any),
          .plain_w = WeightsDesc(shape, Tag::dhwio),
          .strides = {1, 1, 1},
          .dilates = {0, 0, 0},
          .before = Dims(shape.pad_before),
          .after = Dims(shape.pad_after)};
}

Desc MapDesc(const Shape& shape) {
  return Desc({shape[0], shape[3], shape[1], shape[2]}, kFloat, Tag::nhwc);
}

OnednnConvolution::Geometry GeometryOf(const Conv2dShape& shape) {
  const int64_t k = shape.kernel, g = shape.groups;
  const int64_t in = shape.in_channels / g, out = shape.out_channels / g;
  const dnnl::memory::dims dims =
      g == 1 ? dnnl::memory::dims{out, in, k, k} : dnnl::memory::dims{g, out, in, k, k};
  // Ours are (k, k, in, g * out): each dimension's distance in memory.
  const int64_t row = in * g * out;
  const dnnl::memory::dims distances = g == 1 ? dnnl::memory::dims{1, out, k * row, row}
                                              : dnnl::memory::dims{out, 1, g * out, k * row, row};
  return {.x_shape = shape.x(),
          .w_shape = shape.w(),
          .y_shape = shape.y(),
          .x = MapDesc(shape.x()),
          .y = MapDesc(shape.y()),
          .any_w = Desc(dims, kFloat, Tag::any),
          .plain_w = Desc(dims, kFloat, distances),
          .strides = {shape.stride, shape.stride},
          .dilates = {shape.dilation - 1, shape.dilation - 1},
          .before = {shape.pad(), shape.pad()},
          .after = {shape.pad(), shape.pad()}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<OnednnConvolution>> OnednnConvolution::Make(
    const ConvShape& shape, const dnnl::engine& engine, const dnnl::stream& stream) {
  return Make(GeometryOf(shape), engine, stream);
}

absl::StatusOr<std::unique_ptr<OnednnConvolution>> OnednnConvolution::Make(
    const Conv2dShape& shape, const dnnl::engine& engine, const dnnl::stream& stream) {
  return Make(GeometryOf(shape), engine, stream);
}

absl::StatusOr<std::unique_ptr<OnednnConvolution>> OnednnConvolution::Make(
    const Geometry& geometry, const dnnl::engine& engine, const dnnl::stream& stream) {
  std::unique_ptr<OnednnConvolution> convolution;
  RETURN_IF_ERROR(CatchOnednn(
      "convolution", [&] { convolution.reset(new OnednnConvolution(geometry, engine, stream)); }));
  return convolution;
}

OnednnConvolution::OnednnConvolution(const Geometry& geometry, const dnnl::engine& engine,
                                     const dnnl::stream& stream)
    : shape_(geometry), stream_(stream) {
  const Desc &x = geometry.x, &y = geometry.y, &any = geometry.any_w, &plain = geometry.plain_w;
  const dnnl::memory::dims &strides = geometry.strides, &dilates = geometry.dilates;
  const dnnl::memory::dims &before = geometry.before, &after = geometry.after;

  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, kDirect, x, any, y, strides, dilates, before, after},
      engine);
  const dnnl::convolution_backward_data::primitive_desc backward_data(
      {kDirect, x, any, y, strides, dilates, before, after}, engine, forward);
  const dnnl::convolution_backward_weights::primitive_desc backward_weights(
      {kDirect, x, any, y, strides, dilates, before, after}, engine, forward);
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
  CHECK(x.shape == shape_.x_shape && w.shape == shape_.w_shape && y.shape == shape_.y_shape);
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
  CHECK(dx.shape == shape_.x_shape && w.shape == shape_.w_shape && dy.shape == shape_.y_shape);
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
  CHECK(x.shape == shape_.x_shape && dw.shape == shape_.w_shape && dy.shape == shape_.y_shape);
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
