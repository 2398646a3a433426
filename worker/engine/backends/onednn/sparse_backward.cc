#include "worker/engine/backends/onednn/sparse_backward.h"

#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "common/log.h"
#include "worker/engine/backends/onednn/sparse_windows.h"

// Vector code in functions of its own, so that the rest of the program runs on any x86-64.
#define ASSAY_AVX512 __attribute__((target("avx512f,avx2")))

namespace assay {
namespace {

constexpr int64_t kLanes = PaddedInput::kLanes;
constexpr int64_t kGroup = 8;     // output channels whose gradients are unpacked together
constexpr int64_t kSlice = 16;    // output channels of one unit of parallel work
constexpr int64_t kWindows = 16;  // windows between two visits to a channel's weights

// The gradients of a few windows for kGroup channels, and where in the padded input each belongs.
struct alignas(32) Group {
  float gradient[kWindows][kGroup];
  int32_t offset[kWindows][kGroup];
};

// Output channels [first, last): at most kSlice.
struct Channels {
  int64_t first, last;
};

ASSAY_AVX512 void Unpack(const PaddedInput& in, const PooledGradient& pooled,
                         const Windows<kWindows>& windows, int64_t channel, Group* group) {
  const WindowSteps steps(in);
  alignas(32) int32_t positions[8];
  for (int64_t i = 0; i < 8; ++i)
    positions[i] =
        static_cast<int32_t>(i / 4 * steps.plane + i / 2 % 2 * steps.line + i % 2 * steps.voxel);
  const __m256i table = _mm256_load_si256(reinterpret_cast<const __m256i*>(positions));
  const __m256 slope = _mm256_set1_ps(pooled.slope);
  for (int64_t i = 0; i < windows.count; ++i) {
    const int64_t start = (windows.first + i) * in.conv.out_channels + channel;
    const __m256i code = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pooled.code + start)));
    const __m256i offset = _mm256_add_epi32(_mm256_permutevar8x32_epi32(table, code),
                                            _mm256_set1_epi32(windows.offset[i]));
    const __m256 incoming = _mm256_loadu_ps(pooled.dy + start);
    // Bit 3 of the code, moved to the sign, selects.
    const __m256 is_positive = _mm256_castsi256_ps(_mm256_slli_epi32(code, 28));
    const __m256 gradient = _mm256_blendv_ps(_mm256_mul_ps(incoming, slope), incoming, is_positive);
    _mm256_store_ps(group->gradient[i], gradient);
    _mm256_store_si256(reinterpret_cast<__m256i*>(group->offset[i]), offset);
  }
}

// The loops exist once per kernel extent and per number of segments and vectors that one pass keeps
// in registers.
template <int64_t kKernel, int64_t kSegments, int64_t kVectors>
struct Passes {
  static constexpr int64_t kCount = kSegments * kVectors;

  // Vector `i` of a pass, in elements from the pass' first.
  static constexpr int64_t At(int64_t i, const WindowSteps& steps) {
    const int64_t segment = i / kVectors;
    return segment / kKernel * steps.plane + segment % kKernel * steps.line + i % kVectors * kLanes;
  }

  // Calls visit(offset in a window, offset in the weights of a channel) for every pass.
  template <typename Visit>
  static void ForEachPass(const WindowSteps& steps, int64_t segment_vectors, Visit visit) {
    for (int64_t segment = 0; segment < kKernel * kKernel; segment += kSegments)
      for (int64_t vector = 0; vector < segment_vectors; vector += kVectors)
        visit(segment / kKernel * steps.plane + segment % kKernel * steps.line + vector * kLanes,
              (segment * segment_vectors + vector) * kLanes);
  }

  // dw += sum of g * x over the windows, for channel `c` of the group.
  ASSAY_AVX512 static void AddWeights(const WindowSteps& steps, const float* x, const Group& group,
                                      int64_t c, int64_t count, float* dw) {
    __m512 sum[kCount];
#pragma GCC unroll 32
    for (int64_t i = 0; i < kCount; ++i)
      sum[i] = _mm512_loadu_ps(dw + i * kLanes);
    for (int64_t p = 0; p < count; ++p) {
      const __m512 gradient = _mm512_set1_ps(group.gradient[p][c]);
      const float* window = x + group.offset[p][c];
#pragma GCC unroll 32
      for (int64_t i = 0; i < kCount; ++i)
        sum[i] = _mm512_fmadd_ps(_mm512_loadu_ps(window + At(i, steps)), gradient, sum[i]);
    }
#pragma GCC unroll 32
    for (int64_t i = 0; i < kCount; ++i)
      _mm512_storeu_ps(dw + i * kLanes, sum[i]);
  }

  // dx += g * w at the windows, for channel `c` of the group.
  ASSAY_AVX512 static void AddData(const WindowSteps& steps, const float* w, const Group& group,
                                   int64_t c, int64_t count, float* dx) {
    __m512 weight[kCount];
#pragma GCC unroll 32
    for (int64_t i = 0; i < kCount; ++i)
      weight[i] = _mm512_loadu_ps(w + i * kLanes);
    for (int64_t p = 0; p < count; ++p) {
      const __m512 gradient = _mm512_set1_ps(group.gradient[p][c]);
      float* window = dx + group.offset[p][c];
#pragma GCC unroll 32
      for (int64_t i = 0; i < kCount; ++i) {
        float* target = window + At(i, steps);
        _mm512_storeu_ps(target, _mm512_fmadd_ps(weight[i], gradient, _mm512_loadu_ps(target)));
      }
    }
  }

  // Adds one group of windows to the dw of its kGroup channels, which `dw` points to.
  static void AddGroupWeights(const SparseBackward& plan, const float* x, const Group& group,
                              int64_t count, float* dw) {
    const WindowSteps steps(plan.input());
    for (int64_t c = 0; c < kGroup; ++c, dw += kKernel * kKernel * plan.segment_stride())
      ForEachPass(steps, plan.segment_stride() / kLanes, [&](int64_t x_offset, int64_t w_offset) {
        AddWeights(steps, x + x_offset, group, c, count, dw + w_offset);
      });
  }

  // Adds one group of windows, whose kGroup channels' weights `w` points to, to dx.
  static void AddGroupData(const SparseBackward& plan, const float* w, const Group& group,
                           int64_t count, float* dx) {
    const WindowSteps steps(plan.input());
    for (int64_t c = 0; c < kGroup; ++c, w += kKernel * kKernel * plan.segment_stride())
      ForEachPass(steps, plan.segment_stride() / kLanes, [&](int64_t x_offset, int64_t w_offset) {
        AddData(steps, w + w_offset, group, c, count, dx + x_offset);
      });
  }

  // dw and dbias of some channels.
  static void WeightsOfChannels(const SparseBackward& plan, const float* x,
                                const PooledGradient& pooled, Channels channels, float* dw,
                                float* dbias) {
    const PaddedInput& in = plan.input();
    const int64_t size = kKernel * kKernel * plan.segment_stride();
    const int64_t end = in.conv.batch * WindowsPerSample(in.conv);
    double bias_sums[kSlice] = {};
    std::fill(dw + channels.first * size, dw + channels.last * size, 0.0F);
    for (int64_t window = 0; window < end; window += kWindows) {
      const Windows<kWindows> windows(in, in.sample_stride(), window, end);
      for (int64_t channel = channels.first; channel < channels.last; channel += kGroup) {
        Group group;
        Unpack(in, pooled, windows, channel, &group);
        AddGroupWeights(plan, x, group, windows.count, dw + channel * size);
        for (int64_t i = 0; i < windows.count * kGroup; ++i)
          bias_sums[channel - channels.first + i % kGroup] +=
              double{group.gradient[i / kGroup][i % kGroup]};
      }
    }
    for (int64_t c = channels.first; c < channels.last; ++c)
      dbias[c] = static_cast<float>(bias_sums[c - channels.first]);
  }

  // One sample of dx.
  static void DataOfSample(const SparseBackward& plan, const float* w, const PooledGradient& pooled,
                           int64_t sample, float* dx) {
    const PaddedInput& in = plan.input();
    const int64_t size = kKernel * kKernel * plan.segment_stride();
    const int64_t end = (sample + 1) * WindowsPerSample(in.conv);
    std::fill_n(dx + sample * in.sample_stride(), in.sample_stride(), 0.0F);
    for (int64_t window = sample * WindowsPerSample(in.conv); window < end; window += kWindows) {
      const Windows<kWindows> windows(in, in.sample_stride(), window, end);
      for (int64_t channel = 0; channel < in.conv.out_channels; channel += kGroup) {
        Group group;
        Unpack(in, pooled, windows, channel, &group);
        AddGroupData(plan, w + channel * size, group, windows.count, dx);
      }
    }
  }
};

}  // namespace

struct SparseBackward::Loops {
  decltype(&Passes<3, 9, 1>::WeightsOfChannels) weights;
  decltype(&Passes<3, 9, 1>::DataOfSample) data;

  template <int64_t kKernel, int64_t kSegments, int64_t kVectors>
  static constexpr Loops Of() {
    using P = Passes<kKernel, kSegments, kVectors>;
    return {P::WeightsOfChannels, P::DataOfSample};
  }
};

bool SparseBackward::CanDo(const ConvShape& conv) {
  const PaddedInput input(conv);
  return __builtin_cpu_supports("avx512f") != 0 && conv.out_channels % kGroup == 0 &&
         conv.output(0) % 2 == 0 && conv.output(1) % 2 == 0 && conv.output(2) % 2 == 0 &&
         input.bytes() / sizeof(float) <= std::numeric_limits<int32_t>::max() &&
         LoopsFor<Loops>(conv) != nullptr;
}

SparseBackward::SparseBackward(const ConvShape& conv)
    : input_(conv),
      segment_vectors_((conv.kernel * conv.in_channels + kLanes - 1) / kLanes),
      loops_(LoopsFor<Loops>(conv)) {
  CHECK(CanDo(conv));
}

size_t SparseBackward::weight_floats() const {
  const ConvShape& conv = input_.conv;
  return static_cast<size_t>(conv.out_channels * conv.kernel * conv.kernel * segment_stride());
}

void SparseBackward::Weights(const float* x, const PooledGradient& gradient, float* dw,
                             float* dbias) const {
  const int64_t out = input_.conv.out_channels;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < out; first += kSlice)
    loops_->weights(*this, x, gradient, {first, std::min(out, first + kSlice)}, dw, dbias);
}

void SparseBackward::Data(const float* w, const PooledGradient& gradient, float* dx) const {
#pragma omp parallel for schedule(static)
  for (int64_t sample = 0; sample < input_.conv.batch; ++sample)
    loops_->data(*this, w, gradient, sample, dx);
}

}  // namespace assay
