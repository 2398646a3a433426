#include "worker/engine/backends/onednn/onednn_convolution.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/onednn/fixed_scale.h"
#include "worker/engine/backends/onednn/onednn_error.h"

namespace assay {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;
constexpr absl::string_view kBestKernels = "brgconv";

dnnl::memory::dims Dims(const std::array<int64_t, 3>& values) {
  return {values.begin(), values.end()};
}

// oneDNN names dimensions (N, C, D, H, W) whatever the order in memory.
Desc ActivationDesc(const Shape& shape) {
  return Desc({shape[0], shape[4], shape[1], shape[2], shape[3]}, Type::f32, Tag::ndhwc);
}

Desc WeightsDesc(const ConvShape& shape, Tag tag) {
  const int64_t k = shape.kernel;
  return Desc({shape.out_channels, shape.in_channels, k, k, k}, Type::f32, tag);
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
  return Desc({shape[0], shape[3], shape[1], shape[2]}, Type::f32, Tag::nhwc);
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
          .any_w = Desc(dims, Type::f32, Tag::any),
          .plain_w = Desc(dims, Type::f32, distances),
          .strides = {shape.stride, shape.stride},
          .dilates = {shape.dilation - 1, shape.dilation - 1},
          .before = {shape.pad(), shape.pad()},
          .after = {shape.pad(), shape.pad()}};
}

// The library's kernels for single products take steps by way of a copy without them. Where the
// channels of the input are no multiple of a vector's, those of passes backward write a whole
// vector behind its end (2.6: heap corruption). So the next best of its kernels is taken there.
template <typename PrimitiveDesc>
PrimitiveDesc WithinBounds(PrimitiveDesc desc, const OnednnConvolution::Geometry& g) {
  constexpr absl::string_view kSingleProducts = "jit_1x1";
  constexpr int64_t kVectorChannels = 16;
  const bool is_strided =
      std::any_of(g.strides.begin(), g.strides.end(), [](int64_t stride) { return stride != 1; });
  const int64_t channels = g.x.dims()[1];
  if (!is_strided || channels % kVectorChannels == 0) return desc;
  while (absl::StartsWith(desc.impl_info_str(), kSingleProducts))
    CHECK(desc.next_impl()) << "no kernel but " << desc.impl_info_str();
  return desc;
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
  const Geometry& g = geometry;
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, kDirect, g.x, g.any_w, g.y, g.strides, g.dilates,
       g.before, g.after},
      engine);
  const auto backward_data = WithinBounds(
      dnnl::convolution_backward_data::primitive_desc(
          {kDirect, g.x, g.any_w, g.y, g.strides, g.dilates, g.before, g.after}, engine, forward),
      g);
  const auto backward_weights = WithinBounds(
      dnnl::convolution_backward_weights::primitive_desc(
          {kDirect, g.x, g.any_w, g.y, g.strides, g.dilates, g.before, g.after}, engine, forward),
      g);
  forward_ = dnnl::convolution_forward(forward);
  forward_kernel_ = forward.impl_info_str();
  backward_weights_ = dnnl::convolution_backward_weights(backward_weights);

  x_ = dnnl::memory(g.x, engine, nullptr);
  w_ = dnnl::memory(g.plain_w, engine, nullptr);
  y_ = dnnl::memory(g.y, engine, nullptr);
  const auto pack = [&](const Desc& packed) {
    return PackedWeights{dnnl::memory(packed, engine),
                         dnnl::reorder({engine, g.plain_w, engine, packed})};
  };
  forward_weights_ = pack(forward.weights_desc());
  PlanMirrored();
  if (!mirrored_.primitive) {
    backward_data_ = dnnl::convolution_backward_data(backward_data);
    backward_data_weights_ = pack(backward_data.weights_desc());
  }
  const Desc gradients = backward_weights.diff_weights_desc();
  weight_gradients_ = {dnnl::memory(gradients, engine),
                       dnnl::reorder({engine, gradients, engine, g.plain_w})};
}

// The library's kernels for forward passes are its best (measured: docs/benchmarks/pytorch.md), and
// it has none of their kind for backward passes.
void OnednnConvolution::PlanMirrored() {
  const Geometry& g = shape_;
  const size_t rank = g.w_shape.rank(), axes = g.strides.size();
  const bool is_grouped = g.any_w.dims().size() != rank;
  const bool is_strided =
      std::any_of(g.strides.begin(), g.strides.end(), [](int64_t stride) { return stride != 1; });
  if (is_grouped || is_strided || !absl::StartsWith(forward_kernel_, kBestKernels)) return;
  const int64_t in = g.w_shape[rank - 2], out = g.w_shape[rank - 1];
  dnnl::memory::dims dims(2 + axes), distances(2 + axes), before, after;
  dims[0] = in, dims[1] = out;
  distances[0] = out, distances[1] = 1;
  int64_t tap = in * out;
  for (size_t axis = axes; axis-- > 0; tap *= g.w_shape[axis]) {
    dims[2 + axis] = g.w_shape[axis];
    distances[2 + axis] = tap;
  }
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t reach = (g.dilates[axis] + 1) * (g.w_shape[axis] - 1);
    before.push_back(reach - g.before[axis]);
    after.push_back(reach - g.after[axis]);
  }
  const dnnl::engine engine = stream_.get_engine();
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, kDirect, g.y, Desc(dims, Type::f32, Tag::any), g.x,
       g.strides, g.dilates, before, after},
      engine, /*allow_empty=*/true);
  if (!forward || !absl::StartsWith(forward.impl_info_str(), kBestKernels)) return;
  const Desc turned(dims, Type::f32, distances), packed = forward.weights_desc();
  mirrored_ = {dnnl::convolution_forward(forward),
               dnnl::memory(turned, engine),
               {dnnl::memory(packed, engine), dnnl::reorder({engine, turned, engine, packed})}};
}

void OnednnConvolution::WeightsChanged() {
  forward_weights_.is_current = false;
  backward_data_weights_.is_current = false;
  mirrored_.weights.is_current = false;
}

void OnednnConvolution::Pack(const Tensor& w, PackedWeights* packed) {
  if (packed->is_current) return;
  packed->is_current = true;
  w_.set_data_handle(w.As<float>());
  packed->reorder.execute(stream_, w_, packed->memory);
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

void OnednnConvolution::PlanNormalised(bool relu) {
  if (shape_.y_shape.rank() != 4) return;
  MustOnednn("planning a normalised convolution", [&] { MakeNormalised(relu); });
}

void OnednnConvolution::MakeNormalised(bool has_relu) {
  normalised_ = NormalisedForward{.has_relu = has_relu, .primitive = {}, .slope = {}, .offset = {}};
  const Geometry& g = shape_;
  const dnnl::engine engine = stream_.get_engine();
  const Desc channels({1, g.y_shape[3], 1, 1}, Type::f32, Tag::nchw);
  dnnl::post_ops tail;
  tail.append_binary(dnnl::algorithm::binary_mul, channels);
  tail.append_binary(dnnl::algorithm::binary_add, channels);
  if (has_relu) tail.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(tail);
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, kDirect, g.x, forward_weights_.memory.get_desc(), g.y,
       g.strides, g.dilates, g.before, g.after},
      attributes, engine, /*allow_empty=*/true);
  if (!forward || forward.impl_info_str() != forward_kernel_) return;
  normalised_->primitive = dnnl::convolution_forward(forward);
  normalised_->slope = dnnl::memory(channels, engine, nullptr);
  normalised_->offset = dnnl::memory(channels, engine, nullptr);
}

bool OnednnConvolution::ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                                          const Tensor& y) {
  CHECK(x.shape == shape_.x_shape && w.shape == shape_.w_shape && y.shape == shape_.y_shape);
  if (!normalised_.has_value() || normalised_->has_relu != n.relu) return false;
  bool is_offered = false;
  MustOnednn("normalised convolution", [&] {
    is_offered = static_cast<bool>(normalised_->primitive);
    if (!is_offered) return;
    FixedScale scale(n);
    normalised_->slope.set_data_handle(scale.slope.data());
    normalised_->offset.set_data_handle(scale.offset.data());
    Pack(w, &forward_weights_);
    x_.set_data_handle(x.As<float>());
    y_.set_data_handle(y.As<float>());
    normalised_->primitive.execute(
        stream_, {{DNNL_ARG_SRC, x_},
                  {DNNL_ARG_WEIGHTS, forward_weights_.memory},
                  {DNNL_ARG_DST, y_},
                  {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, normalised_->slope},
                  {DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1, normalised_->offset}});
    stream_.wait();  // before `scale` ends
  });
  return is_offered;
}

// Packs the weights for the gradient of x, with the last tap first.
void OnednnConvolution::PackMirrored(const Tensor& w) {
  PackedWeights& packed = mirrored_.weights;
  if (packed.is_current) return;
  packed.is_current = true;
  const size_t rank = w.shape.rank();
  const int64_t tap = w.shape[rank - 2] * w.shape[rank - 1];
  auto* to = static_cast<float*>(mirrored_.turned.get_data_handle());
  for (int64_t from = w.elements() - tap; from >= 0; from -= tap, to += tap)
    std::copy_n(w.As<float>() + from, tap, to);
  packed.reorder.execute(stream_, mirrored_.turned, packed.memory);
}

void OnednnConvolution::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  CHECK(dx.shape == shape_.x_shape && w.shape == shape_.w_shape && dy.shape == shape_.y_shape);
  MustOnednn("convolution backward data", [&] {
    x_.set_data_handle(dx.As<float>());
    y_.set_data_handle(dy.As<float>());
    if (mirrored_.primitive) {
      PackMirrored(w);
      mirrored_.primitive.execute(
          stream_,
          {{DNNL_ARG_SRC, y_}, {DNNL_ARG_WEIGHTS, mirrored_.weights.memory}, {DNNL_ARG_DST, x_}});
      return;
    }
    Pack(w, &backward_data_weights_);
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
