#include "worker/engine/backends/onednn/sparse_conv_pool.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/onednn/fused_forward.h"
#include "worker/engine/backends/onednn/kernels.h"
#include "worker/engine/backends/onednn/onednn_error.h"

namespace assay {
namespace {

constexpr auto kFloat = dnnl::memory::data_type::f32;

PoolExtents ExtentsOf(const ConvShape& conv) {
  return {conv.batch, conv.output(0) / 2, conv.output(1) / 2, conv.output(2) / 2,
          conv.out_channels};
}

}  // namespace

bool SparseConvPool::CanDo(const ConvPoolShape& shape) {
  return SparseBackward::CanDo(shape.conv);
}

absl::StatusOr<std::unique_ptr<SparseConvPool>> SparseConvPool::Make(const ConvPoolShape& shape,
                                                                     const dnnl::engine& engine,
                                                                     const dnnl::stream& stream) {
  std::unique_ptr<SparseConvPool> block;
  RETURN_IF_ERROR(CatchOnednn("sparse convolution",
                              [&] { block.reset(new SparseConvPool(shape, engine, stream)); }));
  if (!CanFuseForward(shape.conv)) {
    ASSIGN_OR_RETURN(block->forward_, OnednnConvolution::Make(shape.conv, engine, stream));
  }
  return block;
}

SparseConvPool::SparseConvPool(const ConvPoolShape& shape, const dnnl::engine& engine,
                               const dnnl::stream& stream)
    : shape_(shape),
      stream_(stream),
      backward_(shape.conv),
      weights_(shape.wants_dx ? backward_.weight_floats() : 0),
      gradients_(backward_.weight_floats()) {
  const int64_t in = shape.conv.in_channels, out = shape.conv.out_channels, k = shape.conv.kernel;
  const int64_t segment = backward_.segment_stride();
  const dnnl::memory::dims dims = {out, in, k, k, k};
  const dnnl::memory::desc plain(dims, kFloat, dnnl::memory::format_tag::dhwio);
  const dnnl::memory::desc packed(dims, kFloat,
                                  dnnl::memory::dims{k * k * segment, 1, k * segment, segment, in});
  packed_weights_ = dnnl::memory(packed, engine, weights_.data());
  packed_gradients_ = dnnl::memory(packed, engine, gradients_.data());
  plain_ = dnnl::memory(plain, engine, nullptr);
  pack_ = dnnl::reorder({engine, plain, engine, packed});
  unpack_ = dnnl::reorder({engine, packed, engine, plain});
}

size_t SparseConvPool::scratch_bytes() const {
  const size_t unpooled = static_cast<size_t>(shape_.conv.y().elements()) * sizeof(float);
  const size_t forward = forward_ == nullptr ? backward_.input().bytes() : unpooled;
  return std::max(forward, (shape_.wants_dx ? 2 : 1) * backward_.input().bytes());
}

void SparseConvPool::WeightsChanged() {
  is_packed_ = false;
  if (forward_ != nullptr) forward_->WeightsChanged();
}

void SparseConvPool::Forward(const ConvPoolTensors& t) {
  CHECK(t.x.shape == shape_.conv.x() && t.w.shape == shape_.conv.w() && t.y.shape == shape_.y());
  const auto slope = static_cast<float>(shape_.slope);
  float* scratch = static_cast<float*>(t.scratch);
  if (forward_ != nullptr) {
    forward_->Forward(t.x, t.w, {t.scratch, shape_.conv.y(), DType::kFloat32});
    return PoolForwardKernel(ExtentsOf(shape_.conv), scratch, t.bias.As<float>(), slope,
                             t.y.As<float>(), t.code.As<uint8_t>());
  }
  PadPlanar(backward_.input(), t.x.As<float>(), scratch);
  RunFusedForward(backward_.input(), FusedForward<float>{.planar = scratch,
                                                         .w = t.w.As<float>(),
                                                         .bias = t.bias.As<float>(),
                                                         .slope = slope,
                                                         .y = t.y.As<float>(),
                                                         .code = t.code.As<uint8_t>()});
}

void SparseConvPool::Backward(const ConvPoolTensors& t, const Tensor& dy,
                              const ConvPoolGradients& gradients) {
  CHECK(dy.shape == shape_.y() && gradients.dw.shape == shape_.conv.w());
  const PaddedInput& input = backward_.input();
  const PooledGradient pooled = {dy.As<float>(), t.code.As<uint8_t>(),
                                 static_cast<float>(shape_.slope)};
  float* x = static_cast<float*>(t.scratch);
  PadInterleaved(input, t.x.As<float>(), x);
  backward_.Weights(x, pooled, gradients_.data(), gradients.dbias.As<float>());
  MustOnednn("unpack weight gradients", [&] {
    plain_.set_data_handle(gradients.dw.As<float>());
    unpack_.execute(stream_, packed_gradients_, plain_);
  });
  if (gradients.dx.data == nullptr) return;

  if (!is_packed_) {
    MustOnednn("pack weights", [&] {
      plain_.set_data_handle(t.w.As<float>());
      pack_.execute(stream_, plain_, packed_weights_);
    });
    is_packed_ = true;
  }
  float* dx = x + input.bytes() / sizeof(float);
  backward_.Data(weights_.data(), pooled, dx);
  CropInterleaved(input, dx, gradients.dx.As<float>());
}

}  // namespace assay
