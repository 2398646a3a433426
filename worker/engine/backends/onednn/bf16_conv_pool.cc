#include "worker/engine/backends/onednn/bf16_conv_pool.h"

#include <algorithm>
#include <span>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/onednn/fused_forward.h"
#include "worker/engine/backends/onednn/kernels.h"
#include "worker/engine/backends/onednn/onednn_error.h"

namespace assay {
namespace {

constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr size_t kCacheLine = 64;

PoolExtents ExtentsOf(const ConvShape& conv) {
  return {conv.batch, conv.output(0) / 2, conv.output(1) / 2, conv.output(2) / 2,
          conv.out_channels};
}

// The same convolution of pairs of channels.
ConvShape Paired(ConvShape conv) {
  conv.in_channels = (conv.in_channels + 1) / 2;
  return conv;
}

// w: (taps, in, out) -> (taps, pairs, out)
std::vector<Bf16Pair> PairWeights(const ConvShape& conv, std::span<const float> w) {
  const int64_t in = conv.in_channels, out = conv.out_channels;
  const int64_t taps = conv.kernel * conv.kernel * conv.kernel;
  std::vector<Bf16Pair> pairs;
  pairs.reserve(static_cast<size_t>(taps * ((in + 1) / 2) * out));
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t c = 0; c < in; c += 2)
      for (int64_t o = 0; o < out; ++o) {
        const float* const first = w.data() + (tap * in + c) * out + o;
        pairs.push_back({Bfloat16(first[0]), Bfloat16(c + 1 < in ? first[out] : 0.0F)});
      }
  return pairs;
}

}  // namespace

bool Bf16ConvPool::CanDo(const ConvPoolShape& shape) {
  return Bf16SparseBackward::CanDo(shape.conv);
}

absl::StatusOr<std::unique_ptr<Bf16ConvPool>> Bf16ConvPool::Make(const ConvPoolShape& shape,
                                                                 const dnnl::engine& engine,
                                                                 const dnnl::stream& stream,
                                                                 Bf16Staging* staging) {
  std::unique_ptr<Bf16ConvPool> block;
  RETURN_IF_ERROR(CatchOnednn("sparse convolution in bfloat16",
                              [&] { block.reset(new Bf16ConvPool(shape, engine, stream)); }));
  if (!CanFuseForward(shape.conv)) {
    ASSIGN_OR_RETURN(block->forward_, OnednnConvolution::Make(shape.conv, engine, stream, staging));
  }
  return block;
}

Bf16ConvPool::Bf16ConvPool(const ConvPoolShape& shape, const dnnl::engine& engine,
                           const dnnl::stream& stream)
    : shape_(shape),
      stream_(stream),
      backward_(shape.conv),
      planes_(Paired(shape.conv)),
      weights_(shape.wants_dx ? (backward_.weight_count() + 1) / 2 : 0),
      gradients_(backward_.weight_count()) {
  const int64_t in = shape.conv.in_channels, out = shape.conv.out_channels, k = shape.conv.kernel;
  const int64_t segment = backward_.segment_stride();
  const dnnl::memory::dims dims = {out, in, k, k, k};
  const dnnl::memory::desc plain(dims, kFloat, dnnl::memory::format_tag::dhwio);
  const dnnl::memory::desc packed(dims, kFloat,
                                  dnnl::memory::dims{k * k * segment, 1, k * segment, segment, in});
  packed_gradients_ = dnnl::memory(packed, engine, gradients_.data());
  plain_ = dnnl::memory(plain, engine, nullptr);
  unpack_ = dnnl::reorder({engine, packed, engine, plain});
}

size_t Bf16ConvPool::bf16_input_bytes() const {
  return (backward_.input().bf16_bytes() + kCacheLine - 1) / kCacheLine * kCacheLine;
}

size_t Bf16ConvPool::scratch_bytes() const {
  const size_t unpooled = static_cast<size_t>(shape_.conv.y().elements()) * sizeof(float);
  const size_t forward = forward_ == nullptr ? planes_.bytes() : unpooled;
  const size_t dx = shape_.wants_dx ? backward_.input().bytes() : 0;
  return std::max(forward, bf16_input_bytes() + dx);
}

void Bf16ConvPool::WeightsChanged() {
  is_packed_ = is_paired_ = false;
  if (forward_ != nullptr) forward_->WeightsChanged();
}

void Bf16ConvPool::Forward(const ConvPoolTensors& t) {
  CHECK(t.x.shape == shape_.conv.x() && t.w.shape == shape_.conv.w() && t.y.shape == shape_.y());
  if (forward_ == nullptr) return ForwardFused(t);
  const Tensor unpooled = {t.scratch, shape_.conv.y(), DType::kFloat32};
  forward_->Forward(t.x, t.w, unpooled);
  PoolForwardKernel(ExtentsOf(shape_.conv), unpooled.As<float>(), t.bias.As<float>(),
                    static_cast<float>(shape_.slope), t.y.As<float>(), t.code.As<uint8_t>());
}

void Bf16ConvPool::ForwardFused(const ConvPoolTensors& t) {
  if (!is_paired_) pairs_ = PairWeights(shape_.conv, t.w.Span<float>());
  is_paired_ = true;
  auto* const planar = static_cast<Bf16Pair*>(t.scratch);
  PadPairs(planes_, shape_.conv.in_channels, t.x.As<float>(), planar);
  RunFusedForward(planes_, FusedForward<Bf16Pair>{.planar = planar,
                                                  .w = pairs_.data(),
                                                  .bias = t.bias.As<float>(),
                                                  .slope = static_cast<float>(shape_.slope),
                                                  .y = t.y.As<float>(),
                                                  .code = t.code.As<uint8_t>()});
}

void Bf16ConvPool::Backward(const ConvPoolTensors& t, const Tensor& dy,
                            const ConvPoolGradients& gradients) {
  CHECK(dy.shape == shape_.y() && gradients.dw.shape == shape_.conv.w());
  const PaddedInput& input = backward_.input();
  const PooledGradient pooled = {dy.As<float>(), t.code.As<uint8_t>(),
                                 static_cast<float>(shape_.slope)};
  auto* const x = static_cast<Bfloat16*>(t.scratch);
  PadInterleavedBf16(input, t.x.As<float>(), x);
  backward_.Weights(x, pooled, gradients_.data(), gradients.dbias.As<float>());
  MustOnednn("unpack weight gradients", [&] {
    plain_.set_data_handle(gradients.dw.As<float>());
    unpack_.execute(stream_, packed_gradients_, plain_);
  });
  if (gradients.dx.data == nullptr) return;

  auto* const packed = reinterpret_cast<Bfloat16*>(weights_.data());
  if (!is_packed_) backward_.Pack(t.w.As<float>(), packed);
  is_packed_ = true;
  auto* const dx =
      reinterpret_cast<float*>(static_cast<std::byte*>(t.scratch) + bf16_input_bytes());
  backward_.Data(packed, pooled, dx);
  CropInterleaved(input, dx, gradients.dx.As<float>());
}

}  // namespace assay
