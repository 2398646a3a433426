#include "worker/engine/backends/onednn/first_layer_kernels.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <vector>

// Vector code in functions of its own, so that the rest of the program runs on any x86-64.
#define ASSAY_AVX512 __attribute__((target("avx512f")))

namespace assay {
namespace {

constexpr int64_t kLanes = 16;             // floats in a vector
constexpr int64_t kRowLanes = 2 * kLanes;  // outputs along W at a time: as many pairs as lanes
constexpr int64_t kGroup = 8;              // output channels at a time
constexpr int64_t kMaxChannels = 4;        // so that k * in_channels fits in a vector

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

// One unpooled row of kRowLanes outputs for kGroup channels. `x` points to the first tap in the
// first plane of channels.
ASSAY_AVX512 void ConvolveRow(const PaddedInput& in, const float* x, const float* w,
                              float (*result)[kRowLanes]) {
  const int64_t plane = in.height * in.width, volume = in.depth * plane;
  const int64_t k = in.conv.kernel, channels = in.conv.in_channels, out = in.conv.out_channels;
  __m512 low[kGroup], high[kGroup];
#pragma GCC unroll 8
  for (int64_t g = 0; g < kGroup; ++g)
    low[g] = high[g] = _mm512_setzero_ps();
  for (int64_t tap = 0; tap < k * k * k; ++tap) {
    const float* source = x + tap / (k * k) * plane + tap / k % k * in.width + tap % k;
    for (int64_t c = 0; c < channels; ++c, source += volume, w += out) {
      const __m512 first = _mm512_loadu_ps(source), second = _mm512_loadu_ps(source + kLanes);
#pragma GCC unroll 8
      for (int64_t g = 0; g < kGroup; ++g) {
        const __m512 weight = _mm512_set1_ps(w[g]);
        low[g] = _mm512_fmadd_ps(first, weight, low[g]);
        high[g] = _mm512_fmadd_ps(second, weight, high[g]);
      }
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

void ForwardOneTile(const PaddedInput& in, const FirstLayerForward& a, const ForwardTile& tile) {
  const int64_t out = in.conv.out_channels;
  const int64_t pooled_height = in.conv.output(1) / 2, pooled_width = in.conv.output(2) / 2;
  UnpooledRows rows;
  for (int64_t r = 0; r < 4; ++r) {
    const int64_t d = tile.depth * 2 + r / 2, h = tile.height * 2 + r % 2;
    const float* x = a.planar + tile.batch * in.sample_elements() + (d * in.height + h) * in.width +
                     tile.width * 2;
    ConvolveRow(in, x, a.w + tile.channel, rows.values[r]);
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

// Sums of one plane (batch, depth) of dy. A segment is the taps (kw, in) of one (kd, kh), which lie
// side by side in an interleaved input; lanes beyond them hold nothing of use.
struct PlaneSums {
  PlaneSums(int64_t out, int64_t segments)
      : dw(static_cast<size_t>(out * segments * kLanes)), dbias(static_cast<size_t>(out)) {}
  std::vector<float> dw;     // (out, segments, kLanes)
  std::vector<float> dbias;  // (out)
};

// A row of dy behind the activation, and where in the input each maximum lies.
struct SparseRow {
  explicit SparseRow(int64_t size)
      : gradient(static_cast<size_t>(size)), offset(static_cast<size_t>(size)) {}
  std::vector<float> gradient;  // (W/2, out)
  std::vector<int32_t> offset;  // same; in elements from the row's start
};

void ReadSparseRow(const PaddedInput& in, const FirstLayerBackward& a, int64_t start,
                   SparseRow* row, std::vector<float>* dbias) {
  const int64_t channels = in.conv.in_channels, line = in.width * channels;
  std::array<int32_t, 8> offsets;
  for (int64_t i = 0; i < 8; ++i)
    offsets[static_cast<size_t>(i)] =
        static_cast<int32_t>((i / 4 * in.height + i / 2 % 2) * line + i % 2 * channels);
  const size_t out = static_cast<size_t>(in.conv.out_channels);
  for (size_t p = 0; p < row->gradient.size(); p += out)
    for (size_t c = 0; c < out; ++c) {
      const uint8_t code = a.code[static_cast<size_t>(start) + p + c];
      const float incoming = a.dy[static_cast<size_t>(start) + p + c];
      const float gradient = (code & 8U) != 0 ? incoming : a.slope * incoming;
      row->gradient[p + c] = gradient;
      row->offset[p + c] =
          offsets[code & 7U] + static_cast<int32_t>(p / out) * 2 * static_cast<int32_t>(channels);
      (*dbias)[c] += gradient;
    }
}

// Adds the outer products of one row to `sums` (kKernel^2, kLanes) of one channel. `x`: the first
// tap of the row's first window; `gradient` and `offset` have stride `out`.
template <int64_t kKernel>
ASSAY_AVX512 void AddRow(const PaddedInput& in, const float* x, const float* gradient,
                         const int32_t* offset, float* sums) {
  const int64_t line = in.width * in.conv.in_channels, plane = in.height * line;
  const int64_t out = in.conv.out_channels, count = in.conv.output(2) / 2;
  constexpr int64_t kSegments = kKernel * kKernel;
  __m512 sum[kSegments];
#pragma GCC unroll 9
  for (int64_t s = 0; s < kSegments; ++s)
    sum[s] = _mm512_loadu_ps(sums + s * kLanes);
  for (int64_t p = 0; p < count; ++p) {
    const __m512 factor = _mm512_set1_ps(gradient[p * out]);
    const float* window = x + offset[p * out];
#pragma GCC unroll 9
    for (int64_t s = 0; s < kSegments; ++s) {
      const float* segment = window + s / kKernel * plane + s % kKernel * line;
      sum[s] = _mm512_fmadd_ps(_mm512_loadu_ps(segment), factor, sum[s]);
    }
  }
#pragma GCC unroll 9
  for (int64_t s = 0; s < kSegments; ++s)
    _mm512_storeu_ps(sums + s * kLanes, sum[s]);
}

void BackwardOnePlane(const PaddedInput& in, const FirstLayerBackward& a, int64_t plane,
                      PlaneSums* sums) {
  const int64_t depth = in.conv.output(0) / 2, height = in.conv.output(1) / 2;
  const int64_t out = in.conv.out_channels, row_size = in.conv.output(2) / 2 * out;
  const int64_t segments = in.conv.kernel * in.conv.kernel;
  SparseRow row(row_size);
  for (int64_t h = 0; h < height; ++h) {
    ReadSparseRow(in, a, (plane * height + h) * row_size, &row, &sums->dbias);
    const float* x = a.interleaved + plane / depth * in.sample_elements() +
                     (plane % depth * 2 * in.height + h * 2) * in.width * in.conv.in_channels;
    for (int64_t c = 0; c < out; ++c) {
      float* dw = sums->dw.data() + c * segments * kLanes;
      if (in.conv.kernel == 3)
        AddRow<3>(in, x, row.gradient.data() + c, row.offset.data() + c, dw);
      else
        AddRow<2>(in, x, row.gradient.data() + c, row.offset.data() + c, dw);
    }
  }
}

// Adds up `planes` in order.
void Reduce(const PaddedInput& in, const std::vector<PlaneSums>& planes,
            const FirstLayerBackward& a) {
  std::vector<double> dw(planes[0].dw.size()), dbias(planes[0].dbias.size());
  for (const PlaneSums& plane : planes) {
    for (size_t i = 0; i < dw.size(); ++i)
      dw[i] += plane.dw[i];
    for (size_t c = 0; c < dbias.size(); ++c)
      dbias[c] += plane.dbias[c];
  }
  const int64_t out = in.conv.out_channels, segments = in.conv.kernel * in.conv.kernel;
  const int64_t taps = in.conv.kernel * in.conv.in_channels;  // of a segment
  for (int64_t s = 0; s < segments; ++s)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t c = 0; c < out; ++c)
        a.dw[(s * taps + t) * out + c] =
            static_cast<float>(dw[static_cast<size_t>((c * segments + s) * kLanes + t)]);
  for (int64_t c = 0; c < out; ++c)
    a.dbias[c] = static_cast<float>(dbias[static_cast<size_t>(c)]);
}

// The line of x that becomes padded line `line` (batch, depth, height), or null for zeros.
const float* SourceLine(const PaddedInput& in, const float* x, int64_t line) {
  const int64_t h = line % in.height - in.conv.pad_before[1];
  const int64_t d = line / in.height % in.depth - in.conv.pad_before[0];
  const int64_t b = line / (in.height * in.depth);
  if (d < 0 || d >= in.conv.input[0] || h < 0 || h >= in.conv.input[1]) return nullptr;
  return x + ((b * in.conv.input[0] + d) * in.conv.input[1] + h) * in.conv.input[2] *
                 in.conv.in_channels;
}

}  // namespace

PaddedInput::PaddedInput(const ConvShape& of_conv)
    : conv(of_conv),
      depth(conv.input[0] + conv.pad_before[0] + conv.pad_after[0]),
      height(conv.input[1] + conv.pad_before[1] + conv.pad_after[1]),
      width(conv.input[2] + conv.pad_before[2] + conv.pad_after[2]) {}

bool HasFirstLayerKernels(const ConvPoolShape& shape) {
  const ConvShape& conv = shape.conv;
  return __builtin_cpu_supports("avx512f") != 0 && (conv.kernel == 2 || conv.kernel == 3) &&
         conv.in_channels <= kMaxChannels && conv.out_channels % kGroup == 0 &&
         conv.output(2) % kRowLanes == 0 && conv.output(0) % 2 == 0 && conv.output(1) % 2 == 0;
}

size_t PaddedFloats(const PaddedInput& input) {
  return static_cast<size_t>(input.conv.batch * input.sample_elements() + kLanes);
}

void PadPlanar(const PaddedInput& input, const float* x, float* planar) {
  const int64_t channels = input.conv.in_channels, before = input.conv.pad_before[2];
  const int64_t lines = input.depth * input.height, width = input.conv.input[2];
#pragma omp parallel for schedule(static)
  for (int64_t line = 0; line < input.conv.batch * lines; ++line) {
    const float* source = SourceLine(input, x, line);
    float* first = planar + (line / lines * channels * lines + line % lines) * input.width;
    for (int64_t c = 0; c < channels; ++c) {
      float* target = first + c * lines * input.width;
      std::fill_n(target, input.width, 0.0F);
      for (int64_t w = 0; source != nullptr && w < width; ++w)
        target[before + w] = source[w * channels + c];
    }
  }
}

void PadInterleaved(const PaddedInput& input, const float* x, float* interleaved) {
  const int64_t channels = input.conv.in_channels, line_size = input.width * channels;
  const int64_t before = input.conv.pad_before[2] * channels;
  const int64_t lines = input.conv.batch * input.depth * input.height;
#pragma omp parallel for schedule(static)
  for (int64_t line = 0; line < lines; ++line) {
    const float* source = SourceLine(input, x, line);
    float* target = interleaved + line * line_size;
    std::fill_n(target, line_size, 0.0F);
    if (source != nullptr) std::copy_n(source, input.conv.input[2] * channels, target + before);
  }
  std::fill_n(interleaved + lines * line_size, kLanes, 0.0F);
}

void RunFirstLayerForward(const PaddedInput& input, const FirstLayerForward& arguments) {
  const int64_t depth = input.conv.output(0) / 2, height = input.conv.output(1) / 2;
  const int64_t width = input.conv.output(2) / 2;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < input.conv.batch * depth * height; ++row)
    for (int64_t w = 0; w < width; w += kLanes)
      for (int64_t c = 0; c < input.conv.out_channels; c += kGroup)
        ForwardOneTile(input, arguments,
                       {row / (depth * height), row / height % depth, row % height, w, c});
}

void RunFirstLayerBackward(const PaddedInput& input, const FirstLayerBackward& arguments) {
  const int64_t planes = input.conv.batch * (input.conv.output(0) / 2);
  const int64_t segments = input.conv.kernel * input.conv.kernel;
  std::vector<PlaneSums> sums(static_cast<size_t>(planes),
                              PlaneSums(input.conv.out_channels, segments));
#pragma omp parallel for schedule(static)
  for (int64_t plane = 0; plane < planes; ++plane)
    BackwardOnePlane(input, arguments, plane, &sums[static_cast<size_t>(plane)]);
  Reduce(input, sums, arguments);
}

}  // namespace assay
