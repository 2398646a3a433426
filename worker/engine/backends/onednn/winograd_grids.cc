#include "worker/engine/backends/onednn/winograd_grids.h"

#include <algorithm>
#include <cstring>

#include "common/log.h"
#include "worker/engine/backends/onednn/onednn_error.h"
#include "worker/engine/backends/onednn/vector_clones.h"

namespace assay {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr int64_t kBlock = 16;  // channels that lie together in the library's layout
constexpr int64_t kMinChannels = 64;
constexpr int64_t kTile = 4;           // outputs of a tile along an axis
constexpr int64_t kTileProducts = 36;  // of a tile, for each pair of channels
// What direct sums must cost, in products, for one of Winograd's (measured: 1.3 times as fast at
// 1.7, twice at 2.2).
constexpr double kMinGain = 1.5;

int64_t CeilDiv(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Taps inside the map, of all outputs along an axis.
int64_t TapsInside(int64_t extent, int64_t dilation) {
  return 3 * extent - 2 * std::min(extent, dilation);
}

bool CanDo(const Conv2dShape& s) {
  if (s.kernel != 3 || s.dilation == 1 || s.stride != 1 || s.groups != 1) return false;
  if (std::min(s.in_channels, s.out_channels) < kMinChannels) return false;
  if (s.in_channels % kBlock != 0 || s.out_channels % kBlock != 0) return false;
  const int64_t d = s.dilation;
  const int64_t tiles =
      d * d * CeilDiv(CeilDiv(s.height, d), kTile) * CeilDiv(CeilDiv(s.width, d), kTile);
  const int64_t direct = TapsInside(s.height, d) * TapsInside(s.width, d);
  return static_cast<double>(direct) >= kMinGain * static_cast<double>(kTileProducts * tiles);
}

// to[c] = from[c] * slope[c] + offset[c], at least `least`
ASSAY_VECTOR_CLONES
void ScaleBlock(const float* __restrict from, const float* __restrict slope,
                const float* __restrict offset, float least, float* __restrict to) {
  for (int64_t c = 0; c < kBlock; ++c) {
    const float value = from[c] * slope[c] + offset[c];
    to[c] = value < least ? least : value;
  }
}

}  // namespace

std::unique_ptr<WinogradGrids> WinogradGrids::Make(const Conv2dShape& shape,
                                                   const dnnl::stream& stream,
                                                   WinogradMemory* memory) {
  if (!CanDo(shape)) return nullptr;
  const int64_t d = shape.dilation, count = shape.batch * d * d;
  const int64_t height = CeilDiv(shape.height, d), width = CeilDiv(shape.width, d);
  const Desc x({count, shape.in_channels, height, width}, Type::f32, Tag::nChw16c);
  const Desc y({count, shape.out_channels, height, width}, Type::f32, Tag::nChw16c);
  const Desc w({shape.out_channels, shape.in_channels, 3, 3}, Type::f32, Tag::any);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const Plan plan({dnnl::prop_kind::forward_inference,
                   dnnl::algorithm::convolution_winograd,
                   x,
                   w,
                   y,
                   {1, 1},
                   {1, 1},
                   {1, 1}},
                  attributes, stream.get_engine(), /*allow_empty=*/true);
  if (!plan) return nullptr;
  return std::unique_ptr<WinogradGrids>(new WinogradGrids(shape, plan, stream, memory));
}

WinogradGrids::WinogradGrids(const Conv2dShape& shape, const Plan& plan, const dnnl::stream& stream,
                             WinogradMemory* memory)
    : shape_(shape),
      height_(CeilDiv(shape.height, shape.dilation)),
      width_(CeilDiv(shape.width, shape.dilation)),
      stream_(stream),
      memory_(memory),
      x_(plan.src_desc()),
      y_(plan.dst_desc()),
      scratch_(plan.scratchpad_desc()),
      convolution_(plan) {
  const dnnl::engine engine = stream.get_engine();
  const Desc plain({shape.out_channels, shape.in_channels, 3, 3}, Type::f32, Tag::hwio);
  plain_ = dnnl::memory(plain, engine, nullptr);
  packed_ = dnnl::memory(plan.weights_desc(), engine);
  pack_ = dnnl::reorder({engine, plain, engine, plan.weights_desc()});
  memory->Reserve(WinogradMemory::kX, x_.get_size());
  memory->Reserve(WinogradMemory::kY, y_.get_size());
  memory->Reserve(WinogradMemory::kScratch, scratch_.get_size());
}

// x (B, H, W, in) -> (B, d, d, in / kBlock, height, width, kBlock), with 0 beyond the map.
void WinogradGrids::Gather(const float* x, float* grids) const {
  const int64_t d = shape_.dilation, channels = shape_.in_channels, size = height_ * width_;
#pragma omp parallel for schedule(static)
  for (int64_t grid = 0; grid < shape_.batch * d * d; ++grid) {
    float* const to = grids + grid * channels * size;
    const int64_t sample = grid / (d * d), top = grid / d % d, left = grid % d;
    for (int64_t pixel = 0; pixel < size; ++pixel) {
      const int64_t h = pixel / width_ * d + top, w = pixel % width_ * d + left;
      const bool is_inside = h < shape_.height && w < shape_.width;
      const float* const from = x + ((sample * shape_.height + h) * shape_.width + w) * channels;
      for (int64_t c = 0; c < channels; c += kBlock) {
        float* const block = to + c * size + pixel * kBlock;
        if (is_inside)
          std::memcpy(block, from + c, kBlock * sizeof(float));
        else
          std::fill_n(block, kBlock, 0.0F);
      }
    }
  }
}

// The way back, normalised. What lies beyond the map is dropped.
void WinogradGrids::Scatter(const float* grids, const FixedScale& scale, bool relu,
                            float* y) const {
  const int64_t d = shape_.dilation, channels = shape_.out_channels, size = height_ * width_;
  const float least = relu ? 0.0F : -3.402823466e+38F;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < shape_.batch * shape_.height; ++row) {
    const int64_t sample = row / shape_.height, h = row % shape_.height;
    for (int64_t w = 0; w < shape_.width; ++w) {
      const int64_t grid = (sample * d + h % d) * d + w % d;
      const float* const from = grids + grid * channels * size + (h / d * width_ + w / d) * kBlock;
      for (int64_t c = 0; c < channels; c += kBlock)
        ScaleBlock(from + c * size, scale.slope.data() + c, scale.offset.data() + c, least,
                   y + (row * shape_.width + w) * channels + c);
    }
  }
}

void WinogradGrids::Run(const Tensor& x, const Tensor& w, const Normalisation& n, const Tensor& y) {
  CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
  MustOnednn("dilated convolution", [&] {
    if (!is_packed_) {
      plain_.set_data_handle(w.As<float>());
      pack_.execute(stream_, plain_, packed_);
      is_packed_ = true;
    }
    const dnnl::memory from = memory_->View(WinogradMemory::kX, x_);
    const dnnl::memory to = memory_->View(WinogradMemory::kY, y_);
    Gather(x.As<float>(), static_cast<float*>(from.get_data_handle()));
    convolution_.execute(
        stream_, {{DNNL_ARG_SRC, from},
                  {DNNL_ARG_WEIGHTS, packed_},
                  {DNNL_ARG_DST, to},
                  {DNNL_ARG_SCRATCHPAD, memory_->View(WinogradMemory::kScratch, scratch_)}});
    stream_.wait();
    Scatter(static_cast<const float*>(to.get_data_handle()), FixedScale(n), n.relu, y.As<float>());
  });
}

}  // namespace assay
