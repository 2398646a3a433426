#include "worker/engine/backends/onednn/bf16_conv_pool.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/onednn/bf16_pack.h"
#include "worker/engine/backends/onednn/fused_forward.h"
#include "worker/engine/backends/onednn/kernels.h"
#include "worker/engine/backends/onednn/onednn_error.h"

namespace assay {
namespace {

constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kBf16 = dnnl::memory::data_type::bf16;
constexpr size_t kCacheLine = 64;

size_t WholeLines(size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

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

// The block of BlockedPacking if `weights`, of (out, in, k, k, k), are in its order, else 0.
int64_t BlockOf(const dnnl::memory::desc& weights) {
  using Tag = dnnl::memory::format_tag;
  constexpr std::pair<int64_t, Tag> kOrders[] = {
      {16, Tag::AcdeB16a2b}, {32, Tag::AcdeB32a2b}, {48, Tag::AcdeB48a2b}, {64, Tag::AcdeB64a2b}};
  const dnnl::memory::dims dims = weights.dims();
  if (dims[1] % 2 != 0) return 0;
  for (const auto& [block, tag] : kOrders)
    if (dims[0] % block == 0 && weights == dnnl::memory::desc(dims, kBf16, tag)) return block;
  return 0;
}

}  // namespace

// The convolution by oneDNN, with its factors rounded before.
class Bf16ConvPool::DenseForward {
 public:
  // Throws dnnl::error.
  DenseForward(const ConvShape& conv, const dnnl::engine& engine, const dnnl::stream& stream)
      : conv_(conv), stream_(stream) {
    using Desc = dnnl::memory::desc;
    using Tag = dnnl::memory::format_tag;
    const auto dims = [](const std::array<int64_t, 3>& values) {
      return dnnl::memory::dims(values.begin(), values.end());
    };
    const int64_t k = conv.kernel;
    const dnnl::memory::dims weights = {conv.out_channels, conv.in_channels, k, k, k};
    const Desc x({conv.batch, conv.in_channels, conv.input[0], conv.input[1], conv.input[2]}, kBf16,
                 Tag::ndhwc);
    const Desc y({conv.batch, conv.out_channels, conv.output(0), conv.output(1), conv.output(2)},
                 kFloat, Tag::ndhwc);
    const Desc plain(weights, kFloat, Tag::dhwio);
    const dnnl::convolution_forward::primitive_desc desc({dnnl::prop_kind::forward_training,
                                                          dnnl::algorithm::convolution_direct,
                                                          x,
                                                          Desc(weights, kBf16, Tag::any),
                                                          y,
                                                          {1, 1, 1},
                                                          dims(conv.pad_before),
                                                          dims(conv.pad_after)},
                                                         engine);
    convolution_ = dnnl::convolution_forward(desc);
    block_ = BlockOf(desc.weights_desc());
    x_ = dnnl::memory(x, engine, nullptr);
    y_ = dnnl::memory(y, engine, nullptr);
    plain_ = dnnl::memory(plain, engine, nullptr);
    packed_ = dnnl::memory(desc.weights_desc(), engine);
    pack_ = dnnl::reorder({engine, plain, engine, desc.weights_desc()});
  }

  size_t input_bytes() const {
    return WholeLines(static_cast<size_t>(conv_.x().elements()) * sizeof(Bfloat16));
  }
  void WeightsChanged() { is_packed_ = false; }

  // `input`: memory for input_bytes().
  void Run(const Tensor& x, const Tensor& w, Bfloat16* input, float* y) {
    Round(x.Span<float>(), input);
    MustOnednn("convolution in bfloat16", [&] {
      if (!is_packed_) Pack(w);
      is_packed_ = true;
      x_.set_data_handle(input);
      y_.set_data_handle(y);
      convolution_.execute(stream_,
                           {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, packed_}, {DNNL_ARG_DST, y_}});
    });
  }

 private:
  static void Round(std::span<const float> x, Bfloat16* input) {
    const auto size = static_cast<int64_t>(x.size());
#pragma omp parallel for schedule(static)
    for (int64_t start = 0; start < size; start += kBlock)
      CastToBf16(x.subspan(static_cast<size_t>(start),
                           static_cast<size_t>(std::min(kBlock, size - start))),
                 input + start);
  }

  void Pack(const Tensor& w) {
    if (block_ > 0) {
      const int64_t taps = conv_.kernel * conv_.kernel * conv_.kernel;
      BlockedPacking{taps, conv_.in_channels, conv_.out_channels, block_}.Run(
          w.As<float>(), static_cast<Bfloat16*>(packed_.get_data_handle()));
      return;
    }
    plain_.set_data_handle(w.As<float>());
    pack_.execute(stream_, plain_, packed_);
  }

  static constexpr int64_t kBlock = 1 << 14;  // numbers that one thread rounds at a time

  const ConvShape conv_;
  dnnl::stream stream_;
  dnnl::convolution_forward convolution_;
  int64_t block_ = 0;  // of BlockedPacking, if that is the weights' order
  dnnl::memory x_, y_, plain_, packed_;
  dnnl::reorder pack_;
  bool is_packed_ = false;
};

Bf16ConvPool::~Bf16ConvPool() = default;

bool Bf16ConvPool::CanDo(const ConvPoolShape& shape) {
  return Bf16SparseBackward::CanDo(shape.conv);
}

absl::StatusOr<std::unique_ptr<Bf16ConvPool>> Bf16ConvPool::Make(const ConvPoolShape& shape,
                                                                 const dnnl::engine& engine,
                                                                 const dnnl::stream& stream) {
  std::unique_ptr<Bf16ConvPool> block;
  RETURN_IF_ERROR(CatchOnednn("sparse convolution in bfloat16", [&] {
    block.reset(new Bf16ConvPool(shape, engine, stream));
    if (!CanFuseForward(shape.conv))
      block->forward_ = std::make_unique<DenseForward>(shape.conv, engine, stream);
  }));
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

size_t Bf16ConvPool::scratch_bytes() const {
  const size_t unpooled = static_cast<size_t>(shape_.conv.y().elements()) * sizeof(float);
  const size_t forward = forward_ == nullptr ? planes_.bytes() : forward_->input_bytes() + unpooled;
  const size_t dx = shape_.wants_dx ? backward_.input().bytes() : 0;
  return std::max(forward, WholeLines(backward_.input().bf16_bytes()) + dx);
}

void Bf16ConvPool::WeightsChanged() {
  is_packed_ = is_paired_ = false;
  if (forward_ != nullptr) forward_->WeightsChanged();
}

void Bf16ConvPool::Forward(const ConvPoolTensors& t) {
  CHECK(t.x.shape == shape_.conv.x() && t.w.shape == shape_.conv.w() && t.y.shape == shape_.y());
  if (forward_ == nullptr) return ForwardFused(t);
  auto* const unpooled =
      reinterpret_cast<float*>(static_cast<std::byte*>(t.scratch) + forward_->input_bytes());
  forward_->Run(t.x, t.w, static_cast<Bfloat16*>(t.scratch), unpooled);
  PoolForwardKernel(ExtentsOf(shape_.conv), unpooled, t.bias.As<float>(),
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
      reinterpret_cast<float*>(static_cast<std::byte*>(t.scratch) + WholeLines(input.bf16_bytes()));
  backward_.Data(packed, pooled, dx);
  CropInterleaved(input, dx, gradients.dx.As<float>());
}

}  // namespace assay
