#include "worker/engine/backends/onednn/fused_forward.h"

#include <immintrin.h>

#include <array>
#include <bit>

// Vector code in functions of its own, so that the rest of the program runs on any x86-64.
#define ASSAY_AVX512 __attribute__((target("avx512f")))

namespace assay {
namespace {

constexpr int64_t kLanes = PaddedInput::kLanes;  // floats in a vector
constexpr int64_t kRowLanes = 2 * kLanes;  // outputs along W at a time: as many pairs as lanes
constexpr int64_t kGroup = 8;              // output channels at a time
constexpr int64_t kMaxKernel = 3;
constexpr int64_t kMaxChannels = 4;  // beyond, oneDNN is as fast

// Results of four unpooled rows, (d, h) in scan order, for a group of channels.
struct alignas(64) UnpooledRows {
  float values[4][kGroup][kRowLanes];
};

// Pooled results of a group of channels, channels first.
struct alignas(64) PooledRow {
  float y[kGroup][kLanes];
  uint8_t code[kGroup][kLanes];
};

// Which part of y one call computes.
struct ForwardTile {
  int64_t batch, depth, height, width;  // in y; `width` is the first of kLanes
  int64_t channel;                      // the first of kGroup
};

// Where the inputs of one output lie, in the order of its weights (kD, kH, kW, in).
struct Taps {
  explicit Taps(const PaddedInput& in);

  int64_t count = 0;
  std::array<int64_t, kMaxKernel* kMaxKernel* kMaxKernel* kMaxChannels> offset = {};
};

Taps::Taps(const PaddedInput& in) {
  const int64_t k = in.conv.kernel, plane = in.height * in.width;
  for (int64_t tap = 0; tap < k * k * k; ++tap)
    for (int64_t c = 0; c < in.conv.in_channels; ++c)
      offset[static_cast<size_t>(count++)] =
          c * in.depth * plane + tap / (k * k) * plane + tap / k % k * in.width + tap % k;
}

// One unpooled row of kRowLanes outputs for kGroup of `out` channels.
ASSAY_AVX512 void ConvolveRow(const Taps& taps, const float* x, const float* w, int64_t out,
                              float (*result)[kRowLanes]) {
  __m512 low[kGroup], high[kGroup];
#pragma GCC unroll 8
  for (int64_t g = 0; g < kGroup; ++g)
    low[g] = high[g] = _mm512_setzero_ps();
  const int64_t* offset = taps.offset.data();
  for (int64_t i = 0; i < taps.count; ++i, w += out) {
    const float* input = x + offset[i];
    const __m512 first = _mm512_loadu_ps(input), second = _mm512_loadu_ps(input + kLanes);
#pragma GCC unroll 8
    for (int64_t g = 0; g < kGroup; ++g) {
      const __m512 weight = _mm512_set1_ps(w[g]);
      low[g] = _mm512_fmadd_ps(first, weight, low[g]);
      high[g] = _mm512_fmadd_ps(second, weight, high[g]);
    }
  }
#pragma GCC unroll 8
  for (int64_t g = 0; g < kGroup; ++g) {
    _mm512_store_ps(result[g], low[g]);
    _mm512_store_ps(result[g] + kLanes, high[g]);
  }
}

// The same with two inputs of each output in a word.
ASSAY_AVX512_BF16 void ConvolveRow(const Taps& taps, const Bf16Pair* x, const Bf16Pair* w,
                                   int64_t out, float (*result)[kRowLanes]) {
  __m512 low[kGroup], high[kGroup];
#pragma GCC unroll 8
  for (int64_t g = 0; g < kGroup; ++g)
    low[g] = high[g] = _mm512_setzero_ps();
  const int64_t* offset = taps.offset.data();
  for (int64_t i = 0; i < taps.count; ++i, w += out) {
    const Bf16Pair* input = x + offset[i];
    const auto first = reinterpret_cast<__m512bh>(_mm512_loadu_si512(input));
    const auto second = reinterpret_cast<__m512bh>(_mm512_loadu_si512(input + kLanes));
#pragma GCC unroll 8
    for (int64_t g = 0; g < kGroup; ++g) {
      const auto weight =
          reinterpret_cast<__m512bh>(_mm512_set1_epi32(std::bit_cast<int32_t>(w[g])));
      low[g] = _mm512_dpbf16_ps(low[g], first, weight);
      high[g] = _mm512_dpbf16_ps(high[g], second, weight);
    }
  }
#pragma GCC unroll 8
  for (int64_t g = 0; g < kGroup; ++g) {
    _mm512_store_ps(result[g], low[g]);
    _mm512_store_ps(result[g] + kLanes, high[g]);
  }
}

// Pools along D, H and W, adds the bias and leaks.
ASSAY_AVX512 void PoolRows(const UnpooledRows& rows, const float* bias, float slope,
                           PooledRow* pooled) {
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (int64_t g = 0; g < kGroup; ++g) {
    __m512 max = _mm512_setzero_ps();
    __m512i best = _mm512_setzero_si512();
    for (int position = 0; position < 8; ++position) {
      const float* row = rows.values[position / 2][g];
      const __m512 value = _mm512_permutex2var_ps(
          _mm512_load_ps(row), position % 2 == 0 ? even : odd, _mm512_load_ps(row + kLanes));
      const __mmask16 is_larger =
          position == 0 ? __mmask16{0xFFFF} : _mm512_cmp_ps_mask(value, max, _CMP_GT_OQ);
      max = _mm512_mask_mov_ps(max, is_larger, value);
      best = _mm512_mask_mov_epi32(best, is_larger, _mm512_set1_epi32(position));
    }
    const __m512 sum = _mm512_add_ps(max, _mm512_set1_ps(bias[g]));
    const __mmask16 is_positive = _mm512_cmp_ps_mask(sum, _mm512_setzero_ps(), _CMP_GT_OQ);
    const __m512 leaked = _mm512_mul_ps(sum, _mm512_set1_ps(slope));
    _mm512_store_ps(pooled->y[g], _mm512_mask_mov_ps(leaked, is_positive, sum));
    best = _mm512_mask_or_epi32(best, is_positive, best, _mm512_set1_epi32(8));
    _mm_store_si128(reinterpret_cast<__m128i*>(pooled->code[g]), _mm512_cvtepi32_epi8(best));
  }
}

template <typename Word>
void ForwardOneTile(const PaddedInput& in, const Taps& taps, const FusedForward<Word>& a,
                    const ForwardTile& tile) {
  const int64_t out = in.conv.out_channels;
  const int64_t pooled_height = in.conv.output(1) / 2, pooled_width = in.conv.output(2) / 2;
  UnpooledRows rows;
  for (int64_t r = 0; r < 4; ++r) {
    const int64_t d = tile.depth * 2 + r / 2, h = tile.height * 2 + r % 2;
    const Word* x = a.planar + tile.batch * in.sample_stride() + (d * in.height + h) * in.width +
                    tile.width * 2;
    ConvolveRow(taps, x, a.w + tile.channel, out, rows.values[r]);
  }
  PooledRow pooled;
  PoolRows(rows, a.bias + tile.channel, a.slope, &pooled);
  const int64_t row = (tile.batch * (in.conv.output(0) / 2) + tile.depth) * pooled_height;
  const int64_t start = ((row + tile.height) * pooled_width + tile.width) * out + tile.channel;
  for (int64_t w = 0; w < kLanes; ++w)
    for (int64_t g = 0; g < kGroup; ++g) {
      a.y[start + w * out + g] = pooled.y[g][w];
      a.code[start + w * out + g] = pooled.code[g][w];
    }
}

}  // namespace

bool CanFuseForward(const ConvShape& conv) {
  return __builtin_cpu_supports("avx512f") != 0 && conv.kernel <= kMaxKernel &&
         conv.in_channels <= kMaxChannels && conv.out_channels % kGroup == 0 &&
         conv.output(2) % kRowLanes == 0 && conv.output(0) % 2 == 0 && conv.output(1) % 2 == 0;
}

template <typename Word>
void RunFusedForward(const PaddedInput& planes, const FusedForward<Word>& arguments) {
  const int64_t depth = planes.conv.output(0) / 2, height = planes.conv.output(1) / 2;
  const int64_t width = planes.conv.output(2) / 2;
  const Taps taps(planes);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < planes.conv.batch * depth * height; ++row)
    for (int64_t w = 0; w < width; w += kLanes)
      for (int64_t c = 0; c < planes.conv.out_channels; c += kGroup)
        ForwardOneTile(planes, taps, arguments,
                       {row / (depth * height), row / height % depth, row % height, w, c});
}

template void RunFusedForward(const PaddedInput&, const FusedForward<float>&);
template void RunFusedForward(const PaddedInput&, const FusedForward<Bf16Pair>&);

}  // namespace assay
