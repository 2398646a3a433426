#include "worker/engine/backends/onednn/bf16_pack.h"

#include <immintrin.h>

#include <algorithm>

#include "worker/engine/backends/onednn/avx512_bf16.h"

namespace assay {
namespace {

constexpr int64_t kLanes = 16;

// Sixteen pairs: of `low` in the lower halves, of `high` in the upper ones.
ASSAY_AVX512_BF16 __attribute__((always_inline)) inline __m512i PairsOf(const float* low,
                                                                        const float* high) {
  const __m256bh first = _mm512_cvtneps_pbh(_mm512_loadu_ps(low));
  const __m256bh second = _mm512_cvtneps_pbh(_mm512_loadu_ps(high));
  return _mm512_or_si512(
      _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(first)),
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(second)), 16));
}

// One tap of `p.block` output channels.
ASSAY_AVX512_BF16 void PackBlock(const BlockedPacking& p, const float* w, Bfloat16* packed) {
  for (int64_t c = 0; c < p.in; c += 2, w += 2 * p.out)
    for (int64_t o = 0; o < p.block; o += kLanes, packed += 2 * kLanes)
      _mm512_storeu_si512(packed, PairsOf(w + o, w + p.out + o));
}

// Where column `column` of a segment lies.
int64_t ShuffledColumn(int64_t column, int64_t stride) {
  const int64_t pair = column / (2 * kLanes) * 2 * kLanes;
  if (pair + 2 * kLanes > stride) return column;
  const int64_t half = column / kLanes % 2, lane = column % kLanes / 4;
  return pair + lane * 8 + half * 4 + column % 4;
}

// The two channels that lie in a quarter of `pairs`, each four columns, `size` apart.
ASSAY_AVX512_BF16 __attribute__((always_inline)) inline void StoreTwo(__m128i pairs, int64_t size,
                                                                      Bfloat16* packed) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(packed), pairs);
  _mm_storeh_pd(reinterpret_cast<double*>(packed + size), _mm_castsi128_pd(pairs));
}

// Four columns of sixteen channels, which are `size` apart in `packed` and `out` apart in `w`.
ASSAY_AVX512_BF16 void PackFour(const float* w, int64_t out, int64_t size, Bfloat16* packed) {
  const __m512i front = PairsOf(w, w + out), back = PairsOf(w + 2 * out, w + 3 * out);
  // Of each four channels, the first two and the last two.
  const __m512i low = _mm512_unpacklo_epi32(front, back);
  const __m512i high = _mm512_unpackhi_epi32(front, back);
  StoreTwo(_mm512_castsi512_si128(low), size, packed);
  StoreTwo(_mm512_castsi512_si128(high), size, packed + 2 * size);
  StoreTwo(_mm512_extracti32x4_epi32(low, 1), size, packed + 4 * size);
  StoreTwo(_mm512_extracti32x4_epi32(high, 1), size, packed + 6 * size);
  StoreTwo(_mm512_extracti32x4_epi32(low, 2), size, packed + 8 * size);
  StoreTwo(_mm512_extracti32x4_epi32(high, 2), size, packed + 10 * size);
  StoreTwo(_mm512_extracti32x4_epi32(low, 3), size, packed + 12 * size);
  StoreTwo(_mm512_extracti32x4_epi32(high, 3), size, packed + 14 * size);
}

// The channels [first, first + kLanes), or fewer at the end.
void PackChannels(const ShuffledPacking& p, int64_t first, const float* w, Bfloat16* packed) {
  const int64_t count = std::min(kLanes, p.out - first), size = p.segments * p.stride;
  for (int64_t segment = 0; segment < p.segments; ++segment) {
    const float* rows = w + segment * p.columns * p.out + first;
    Bfloat16* const target = packed + first * size + segment * p.stride;
    int64_t column = 0;
    for (; count == kLanes && column + 4 <= p.columns; column += 4)
      PackFour(rows + column * p.out, p.out, size, target + ShuffledColumn(column, p.stride));
    for (; column < p.columns; ++column)
      for (int64_t c = 0; c < count; ++c)
        target[c * size + ShuffledColumn(column, p.stride)] = Bfloat16(rows[column * p.out + c]);
  }
}

}  // namespace

void BlockedPacking::Run(const float* w, Bfloat16* packed) const {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < out / block * taps; ++i) {
    const int64_t first = i / taps * block, tap = i % taps;
    PackBlock(*this, w + tap * in * out + first, packed + i * in * block);
  }
}

void ShuffledPacking::Run(const float* w, Bfloat16* packed) const {
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < out; first += kLanes)
    PackChannels(*this, first, w, packed);
}

}  // namespace assay
