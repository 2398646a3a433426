// Factors in bfloat16 on CPUs that multiply pairs of them and add up in float32 (AVX512_BF16).

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_AVX512_BF16_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_AVX512_BF16_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"

#include "worker/engine/bfloat16.h"

// Functions that use the instructions; the rest of the program runs on any x86-64.
#define ASSAY_AVX512_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")))

namespace assay {

// Two factors as one operand of the instruction: the first lies in the lower half.
struct Bf16Pair {
  Bfloat16 first, second;
};
static_assert(sizeof(Bf16Pair) == 4);

// UNAVAILABLE: this machine lacks the instructions, or oneDNN was told not to use them; the message
// says which and what to do.
absl::Status RequireAvx512Bf16();

// Rounds to the nearest, ties to even; numbers below 2^-126 become 0. On one thread.
void CastToBf16(std::span<const float> from, Bfloat16* to);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_AVX512_BF16_H_
