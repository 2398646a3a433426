#include "worker/engine/backends/onednn/bf16_sparse_backward.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "common/log.h"
#include "worker/engine/backends/onednn/avx512_bf16.h"
#include "worker/engine/backends/onednn/bf16_pack.h"
#include "worker/engine/backends/onednn/sparse_windows.h"

#define ASSAY_AVX512_BF16_INLINE ASSAY_AVX512_BF16 __attribute__((always_inline)) inline

namespace assay {
namespace {

constexpr int64_t kLanes = PaddedInput::kLanes;  // sums in a vector, and factors in half of one
constexpr int64_t kGroup = 8;         // output channels whose gradients are unpacked together
constexpr int64_t kSlice = 16;        // output channels of one unit of parallel work
constexpr int64_t kWindows = 32;      // windows between two visits to a channel's weights; even
constexpr int64_t kListed = 16;       // windows between two visits to a channel's packed weights
constexpr int64_t kBlock = 128;       // output channels that lists hold; their weights stay cached
constexpr int64_t kFilled = 1 << 16;  // numbers that a thread sets to 0 at a time
constexpr int64_t kPositions = 8;     // of a maximum in its window

// The gradients of pairs of windows for kGroup channels, and where in the padded input each window
// belongs.
struct alignas(64) Group {
  int32_t gradients[kWindows / 2][kGroup];  // of the first window in the lower half
  int32_t offset[kWindows][kGroup];
};

// Output channels [first, last).
struct Channels {
  int64_t first, last;
};

// The channels of one window that have a gradient at each position. An odd one is followed by one
// whose gradient is 0.
struct alignas(64) Lists {
  static constexpr int64_t kRoom = kBlock + kPositions + kLanes;

  int32_t offset[kRoom];     // of the channel's packed weights
  uint16_t gradient[kRoom];  // bits of a Bfloat16
  int32_t begin[kPositions + 1];
};

// Elements between segments along H and D.
struct SegmentSteps {
  int64_t line, plane;
};

SegmentSteps StepsOf(const PaddedInput& in) {
  const WindowSteps steps(in);
  return {steps.line, steps.plane};
}

// How far in the padded input a position is from the window's first tap.
std::array<int32_t, kPositions> PositionOffsets(const PaddedInput& in) {
  const WindowSteps steps(in);
  std::array<int32_t, kPositions> offsets;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t d = i >> 2, h = i >> 1 & 1, w = i & 1;
    offsets[i] = static_cast<int32_t>(d * steps.plane + h * steps.line + w * steps.voxel);
  }
  return offsets;
}

ASSAY_AVX512_BF16_INLINE void StorePairs(__m128i first, __m128i second, int32_t* pairs) {
  _mm_store_si128(reinterpret_cast<__m128i*>(pairs), _mm_unpacklo_epi16(first, second));
  _mm_store_si128(reinterpret_cast<__m128i*>(pairs + 4), _mm_unpackhi_epi16(first, second));
}

// Adds the gradients to `bias_sums` (kGroup).
ASSAY_AVX512_BF16 void Unpack(const PaddedInput& in, const PooledGradient& pooled,
                              const Windows<kWindows>& windows, int64_t channel, Group* group,
                              double* bias_sums) {
  const std::array<int32_t, kPositions> positions = PositionOffsets(in);
  const __m256i table = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(positions.data()));
  const __m256 slope = _mm256_set1_ps(pooled.slope);
  __m512d sums = _mm512_loadu_pd(bias_sums);
  __m128i before = _mm_setzero_si128();
  for (int64_t i = 0; i < windows.count; ++i) {
    const int64_t start = (windows.first + i) * in.conv.out_channels + channel;
    const __m256i code = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pooled.code + start)));
    const __m256i offset = _mm256_add_epi32(_mm256_permutevar8x32_epi32(table, code),
                                            _mm256_set1_epi32(windows.offset[i]));
    _mm256_store_si256(reinterpret_cast<__m256i*>(group->offset[i]), offset);
    const __m256 incoming = _mm256_loadu_ps(pooled.dy + start);
    // Bit 3 of the code, moved to the sign, selects.
    const __m256 is_positive = _mm256_castsi256_ps(_mm256_slli_epi32(code, 28));
    const __m256 gradient = _mm256_blendv_ps(_mm256_mul_ps(incoming, slope), incoming, is_positive);
    sums = _mm512_add_pd(sums, _mm512_cvtps_pd(gradient));
    const auto rounded = reinterpret_cast<__m128i>(_mm256_cvtneps_pbh(gradient));
    if (i % 2 == 1) StorePairs(before, rounded, group->gradients[i / 2]);
    before = rounded;
  }
  _mm512_storeu_pd(bias_sums, sums);
  if (windows.count % 2 == 0) return;
  StorePairs(before, _mm_setzero_si128(), group->gradients[windows.count / 2]);
  std::copy_n(group->offset[windows.count - 1], kGroup, group->offset[windows.count]);
}

// Sorts the gradients of one window by position. `size`: packed weights of a channel.
ASSAY_AVX512_BF16 void Sort(const PooledGradient& pooled, int64_t window_start,
                            const Channels& channels, int64_t size, Lists* lists) {
  alignas(64) int32_t gradient[kBlock];
  alignas(64) uint8_t position[kBlock];
  const __m512 slope = _mm512_set1_ps(pooled.slope);
  const int64_t count = channels.last - channels.first;
  for (int64_t c = 0; c < count; c += kLanes) {
    const auto valid = static_cast<__mmask16>((1U << std::min(kLanes, count - c)) - 1);
    const int64_t at = window_start + channels.first + c;
    const __m128i code = _mm_maskz_loadu_epi8(valid, pooled.code + at);
    const __mmask16 is_positive = _mm_test_epi8_mask(code, _mm_set1_epi8(8));
    const __m512 incoming = _mm512_maskz_loadu_ps(valid, pooled.dy + at);
    const __m512 leaked = _mm512_mul_ps(incoming, slope);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_mask_mov_ps(leaked, is_positive, incoming));
    _mm512_store_si512(gradient + c, _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(rounded)));
    // No position is 8: beyond the last channel nothing is found.
    const __m128i low = _mm_and_si128(code, _mm_set1_epi8(7));
    _mm_store_si128(reinterpret_cast<__m128i*>(position + c),
                    _mm_mask_mov_epi8(_mm_set1_epi8(8), valid, low));
  }
  const __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i sizes = _mm512_mullo_epi32(iota, _mm512_set1_epi32(static_cast<int32_t>(size)));
  int32_t n = 0;
  for (int p = 0; p < kPositions; ++p) {
    lists->begin[p] = n;
    for (int64_t c = 0; c < count; c += kLanes) {
      const __mmask16 is_here =
          _mm_cmpeq_epi8_mask(_mm_load_si128(reinterpret_cast<const __m128i*>(position + c)),
                              _mm_set1_epi8(static_cast<char>(p)));
      const auto first = static_cast<int32_t>((channels.first + c) * size);
      const __m512i offsets = _mm512_add_epi32(sizes, _mm512_set1_epi32(first));
      _mm512_storeu_si512(lists->offset + n, _mm512_maskz_compress_epi32(is_here, offsets));
      const __m512i bits = _mm512_maskz_compress_epi32(is_here, _mm512_load_si512(gradient + c));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(lists->gradient + n),
                          _mm512_cvtepi32_epi16(bits));
      n += std::popcount(static_cast<uint16_t>(is_here));
    }
    if (n % 2 == 0) continue;
    lists->offset[n] = lists->offset[n - 1];
    lists->gradient[n] = 0;
    ++n;
  }
  lists->begin[kPositions] = n;
}

// Undoes, in one channel's weight gradients, the order that Passes::AddPair leaves columns in.
ASSAY_AVX512_BF16 void Straighten(int64_t segments, int64_t segment_vectors, float* dw) {
  const __m512i front = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
  const __m512i back = _mm512_add_epi32(front, _mm512_set1_epi32(8));
  for (int64_t segment = 0; segment < segments; ++segment, dw += segment_vectors * kLanes)
    for (int64_t v = 0; v + 1 < segment_vectors; v += 2) {
      float* const pair = dw + v * kLanes;
      const __m512 low = _mm512_loadu_ps(pair), high = _mm512_loadu_ps(pair + kLanes);
      _mm512_storeu_ps(pair, _mm512_permutex2var_ps(low, front, high));
      _mm512_storeu_ps(pair + kLanes, _mm512_permutex2var_ps(low, back, high));
    }
}

// The loops exist once per kernel extent and per number of segments and vectors of sums that one
// pass keeps in registers.
template <int64_t kKernel, int64_t kSegments, int64_t kVectors>
struct Passes {
  static constexpr int64_t kCount = kSegments * kVectors;
  static constexpr int64_t kWidth = kVectors * kLanes;
  // The weights of a pass lie one after the other.
  static constexpr SegmentSteps kWeightSteps = {kWidth, kKernel* kWidth};

  // Vector `i` of a pass, in elements from the pass' first.
  static constexpr int64_t At(int64_t i, const SegmentSteps& steps) {
    const int64_t segment = i / kVectors;
    return segment / kKernel * steps.plane + segment % kKernel * steps.line + i % kVectors * kLanes;
  }

  // Calls visit(offset in a window, offset in the weights of a channel) for every pass.
  template <typename Visit>
  static void ForEachPass(const SegmentSteps& steps, int64_t segment_vectors, Visit visit) {
    for (int64_t segment = 0; segment < kKernel * kKernel; segment += kSegments)
      for (int64_t vector = 0; vector < segment_vectors; vector += kVectors)
        visit(segment / kKernel * steps.plane + segment % kKernel * steps.line + vector * kLanes,
              (segment * segment_vectors + vector) * kLanes);
  }

  // sum += first * the gradients' lower half + second * their upper half. Of two vectors of sums,
  // the first gets columns 0-3, 8-11, 16-19 and 24-27, the second the others; an odd last one is in
  // order.
  ASSAY_AVX512_BF16_INLINE static void AddPair(const SegmentSteps& steps, const Bfloat16* first,
                                               const Bfloat16* second, __m512bh gradients,
                                               __m512* sum) {
    constexpr int64_t kLoads = (kVectors + 1) / 2;
    const __m512i odd = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                         8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
#pragma GCC unroll 32
    for (int64_t i = 0; i < kSegments * kLoads; ++i) {
      const int64_t vector = i / kLoads * kVectors + i % kLoads * 2, at = At(vector, steps);
      if (i % kLoads * 2 + 1 < kVectors) {
        const __m512i a = _mm512_loadu_si512(first + at), b = _mm512_loadu_si512(second + at);
        const auto low = reinterpret_cast<__m512bh>(_mm512_unpacklo_epi16(a, b));
        const auto high = reinterpret_cast<__m512bh>(_mm512_unpackhi_epi16(a, b));
        sum[vector] = _mm512_dpbf16_ps(sum[vector], low, gradients);
        sum[vector + 1] = _mm512_dpbf16_ps(sum[vector + 1], high, gradients);
      } else {
        const __m512i a = _mm512_castsi256_si512(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first + at)));
        const __m512i b = _mm512_castsi256_si512(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second + at)));
        const auto both = reinterpret_cast<__m512bh>(_mm512_permutex2var_epi16(a, odd, b));
        sum[vector] = _mm512_dpbf16_ps(sum[vector], both, gradients);
      }
    }
  }

  // dw += sum of g * x over the pairs of windows, for channel `c` of the group.
  ASSAY_AVX512_BF16 static void AddWeights(const SegmentSteps& steps, const Bfloat16* x,
                                           const Group& group, int64_t c, int64_t pairs,
                                           float* dw) {
    __m512 sum[kCount];
#pragma GCC unroll 32
    for (int64_t i = 0; i < kCount; ++i)
      sum[i] = _mm512_loadu_ps(dw + i * kLanes);
    for (int64_t p = 0; p < pairs; ++p)
      AddPair(steps, x + group.offset[2 * p][c], x + group.offset[2 * p + 1][c],
              reinterpret_cast<__m512bh>(_mm512_set1_epi32(group.gradients[p][c])), sum);
#pragma GCC unroll 32
    for (int64_t i = 0; i < kCount; ++i)
      _mm512_storeu_ps(dw + i * kLanes, sum[i]);
  }

  // dx += sum of g * w over the channels of a window with a gradient at `position`.
  ASSAY_AVX512_BF16 static void AddData(const SegmentSteps& steps, const Bfloat16* w,
                                        const Lists& lists, int64_t position, float* dx) {
    __m512 sum[kCount];
#pragma GCC unroll 32
    for (int64_t i = 0; i < kCount; ++i)
      sum[i] = _mm512_loadu_ps(dx + At(i, steps));
    for (int64_t i = lists.begin[position]; i < lists.begin[position + 1]; i += 2) {
      int32_t gradients;
      std::memcpy(&gradients, lists.gradient + i, sizeof(gradients));
      AddPair(kWeightSteps, w + lists.offset[i], w + lists.offset[i + 1],
              reinterpret_cast<__m512bh>(_mm512_set1_epi32(gradients)), sum);
    }
#pragma GCC unroll 32
    for (int64_t i = 0; i < kCount; ++i)
      _mm512_storeu_ps(dx + At(i, steps), sum[i]);
  }

  // dw and dbias of some channels.
  static void WeightsOfChannels(const Bf16SparseBackward& plan, const Bfloat16* x,
                                const PooledGradient& pooled, Channels channels, float* dw,
                                float* dbias) {
    const PaddedInput& in = plan.input();
    const SegmentSteps steps = StepsOf(in);
    const int64_t vectors = plan.segment_stride() / kLanes;
    const int64_t size = kKernel * kKernel * plan.segment_stride();
    const int64_t end = in.conv.batch * WindowsPerSample(in.conv);
    double bias_sums[kSlice] = {};
    std::fill(dw + channels.first * size, dw + channels.last * size, 0.0F);
    for (int64_t window = 0; window < end; window += kWindows) {
      const Windows<kWindows> windows(in, in.bf16_sample_stride(), window, end);
      const int64_t pairs = (windows.count + 1) / 2;
      for (int64_t channel = channels.first; channel < channels.last; channel += kGroup) {
        Group group;
        Unpack(in, pooled, windows, channel, &group, bias_sums + (channel - channels.first));
        // Channels inside: what a pass reads of x stays in the first-level cache.
        ForEachPass(steps, vectors, [&](int64_t x_offset, int64_t w_offset) {
          for (int64_t c = 0; c < kGroup; ++c)
            AddWeights(steps, x + x_offset, group, c, pairs, dw + (channel + c) * size + w_offset);
        });
      }
    }
    for (int64_t c = channels.first; c < channels.last; ++c) {
      Straighten(kKernel * kKernel, vectors, dw + c * size);
      dbias[c] = static_cast<float>(bias_sums[c - channels.first]);
    }
  }

  // Adds some windows, sorted, to dx.
  static void AddListed(const Bf16SparseBackward& plan, const Bfloat16* w,
                        const Windows<kListed>& windows, const Lists* lists, float* dx) {
    const SegmentSteps steps = StepsOf(plan.input());
    const std::array<int32_t, kPositions> positions = PositionOffsets(plan.input());
    ForEachPass(steps, plan.segment_stride() / kLanes, [&](int64_t x_offset, int64_t w_offset) {
      for (int64_t i = 0; i < windows.count; ++i)
        for (int64_t p = 0; p < kPositions; ++p)
          if (lists[i].begin[p] < lists[i].begin[p + 1])
            AddData(steps, w + w_offset, lists[i], p,
                    dx + windows.offset[i] + positions[static_cast<size_t>(p)] + x_offset);
    });
  }

  // Adds the windows [first, end) to dx.
  static void DataOfWindows(const Bf16SparseBackward& plan, const Bfloat16* w,
                            const PooledGradient& pooled, int64_t first, int64_t end, float* dx) {
    const PaddedInput& in = plan.input();
    const int64_t out = in.conv.out_channels;
    const int64_t size = kKernel * kKernel * plan.segment_stride();
    for (int64_t window = first; window < end; window += kListed) {
      const Windows<kListed> windows(in, in.sample_stride(), window, end);
      for (int64_t channel = 0; channel < out; channel += kBlock) {
        Lists lists[kListed];
        for (int64_t i = 0; i < windows.count; ++i)
          Sort(pooled, (windows.first + i) * out, {channel, std::min(out, channel + kBlock)}, size,
               &lists[i]);
        AddListed(plan, w, windows, lists, dx);
      }
    }
  }
};

// How many units of parallel work a sample of dx has. More than one: the windows of one depth each.
// Those of every second depth touch different planes if no vector reaches beyond its segment.
int64_t UnitsOfSample(const ConvShape& conv) {
  const bool is_worth_it = conv.output(1) / 2 * (conv.output(2) / 2) >= kListed;
  const bool is_exact = conv.kernel * conv.in_channels % kLanes == 0;
  return is_worth_it && is_exact ? conv.output(0) / 2 : 1;
}

}  // namespace

struct Bf16SparseBackward::Loops {
  decltype(&Passes<3, 9, 1>::WeightsOfChannels) weights;
  decltype(&Passes<3, 9, 1>::DataOfWindows) data;

  template <int64_t kKernel, int64_t kSegments, int64_t kVectors>
  static constexpr Loops Of() {
    using P = Passes<kKernel, kSegments, kVectors>;
    return {P::WeightsOfChannels, P::DataOfWindows};
  }
};

bool Bf16SparseBackward::CanDo(const ConvShape& conv) {
  const PaddedInput input(conv);
  const int64_t weights =
      conv.out_channels * conv.kernel * conv.kernel * (conv.kernel * conv.in_channels + kLanes);
  return SparseBackward::CanDo(conv) && LoopsFor<Loops>(conv) != nullptr &&
         weights <= std::numeric_limits<int32_t>::max() &&
         input.bf16_bytes() / sizeof(Bfloat16) <= std::numeric_limits<int32_t>::max();
}

Bf16SparseBackward::Bf16SparseBackward(const ConvShape& conv)
    : input_(conv),
      segment_vectors_((conv.kernel * conv.in_channels + kLanes - 1) / kLanes),
      loops_(LoopsFor<Loops>(conv)) {
  CHECK(CanDo(conv));
}

size_t Bf16SparseBackward::weight_count() const {
  const ConvShape& conv = input_.conv;
  return static_cast<size_t>(conv.out_channels * conv.kernel * conv.kernel * segment_stride());
}

void Bf16SparseBackward::Pack(const float* w, Bfloat16* packed) const {
  const ConvShape& conv = input_.conv;
  ShuffledPacking{.segments = conv.kernel * conv.kernel,
                  .columns = conv.kernel * conv.in_channels,
                  .out = conv.out_channels,
                  .stride = segment_stride()}
      .Run(w, packed);
}

void Bf16SparseBackward::Weights(const Bfloat16* x, const PooledGradient& gradient, float* dw,
                                 float* dbias) const {
  const int64_t out = input_.conv.out_channels;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < out; first += kSlice)
    loops_->weights(*this, x, gradient, {first, std::min(out, first + kSlice)}, dw, dbias);
}

void Bf16SparseBackward::Data(const Bfloat16* packed, const PooledGradient& gradient,
                              float* dx) const {
  const ConvShape& conv = input_.conv;
  const int64_t size = conv.batch * input_.sample_stride(), units = UnitsOfSample(conv);
  const int64_t windows = WindowsPerSample(conv) / units;
#pragma omp parallel for schedule(static)
  for (int64_t start = 0; start < size; start += kFilled)
    std::fill_n(dx + start, std::min(kFilled, size - start), 0.0F);
  // Even units, then odd ones: neighbours add to the same planes.
  for (int64_t parity = 0; parity < 2; ++parity) {
    const int64_t per_sample = (units + 1 - parity) / 2;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < conv.batch * per_sample; ++i) {
      const int64_t first = i / per_sample * units + i % per_sample * 2 + parity;
      loops_->data(*this, packed, gradient, first * windows, (first + 1) * windows, dx);
    }
  }
}

}  // namespace assay
