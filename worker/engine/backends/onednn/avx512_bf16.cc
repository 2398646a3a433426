#include "worker/engine/backends/onednn/avx512_bf16.h"

#include <immintrin.h>

#include <oneapi/dnnl/dnnl.hpp>

namespace assay {
namespace {

bool HasInstructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#else
  return false;
#endif
}

ASSAY_AVX512_BF16 void CastVectors(const float* from, size_t count, Bfloat16* to) {
  for (size_t i = 0; i < count; i += 16) {
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_loadu_ps(from + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), reinterpret_cast<__m256i>(rounded));
  }
}

}  // namespace

absl::Status RequireAvx512Bf16() {
  if (!HasInstructions())
    return absl::UnavailableError(
        "backend onednn-bf16 needs a CPU that multiplies bfloat16 (AVX512_BF16), and this one "
        "cannot; use backend onednn");
  constexpr auto kNeeded = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  if ((isa & kNeeded) != kNeeded)
    return absl::UnavailableError(
        "backend onednn-bf16: oneDNN may not use AVX512_BF16 here; unset ONEDNN_MAX_CPU_ISA or "
        "use backend onednn");
  return absl::OkStatus();
}

void CastToBf16(std::span<const float> from, Bfloat16* to) {
  const size_t whole = from.size() / 16 * 16;
  CastVectors(from.data(), whole, to);
  for (size_t i = whole; i < from.size(); ++i)
    to[i] = Bfloat16(from[i]);
}

}  // namespace assay
