#include "worker/engine/peak_rate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/log.h"

// The machine's best instructions, chosen when the program loads; sanitizers cannot run that
// choice.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ASSAY_MULTIPLY_ADD_CLONES __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define ASSAY_MULTIPLY_ADD_CLONES
#endif

namespace assay {
namespace {

using Narrow = float __attribute__((vector_size(32)));
using Wide = float __attribute__((vector_size(64)));

constexpr int64_t kVectorOperations = 9'000'000;  // of each thread in one trial: some milliseconds
constexpr int kTrials = 5;
constexpr size_t kCopiedFloats = size_t{8} << 20;  // of each thread: 32 MiB read, 32 MiB written

// Independent chains of multiply-adds: enough to keep two units busy, few enough for 16 registers.
constexpr int kChains = 12;

template <typename Vector>
[[gnu::always_inline]] inline float RunChains(int64_t rounds, float factor) {
  Vector chains[kChains] = {};
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i)
    chains[i] += static_cast<float>(i);  // or they would all be one
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i)
      chains[i] = chains[i] * factor + factor;
  }
  float sum = 0;
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i)
    sum += chains[i][0];
  return sum;
}

// A wider register than the machine's is slow, so both are tried.
ASSAY_MULTIPLY_ADD_CLONES float RunNarrow(int64_t rounds, float factor) {
  return RunChains<Narrow>(rounds, factor);
}

ASSAY_MULTIPLY_ADD_CLONES float RunWide(int64_t rounds, float factor) {
  return RunChains<Wide>(rounds, factor);
}

PeakRate RunTrial(const Clock* clock, float (*run)(int64_t, float), size_t vector_bytes) {
  float sum = 0;
  int threads = 0;
  const MonoTime begin = clock->Mono();
#pragma omp parallel reduction(+ : sum, threads)
  {
    sum += run(kVectorOperations / kChains, 0.5F);
    ++threads;
  }
  const double seconds = absl::ToDoubleSeconds(clock->Mono() - begin);
  CHECK(std::isfinite(sum)) << "the chains converge";
  if (seconds <= 0) return {.threads = threads};
  const double lanes = static_cast<double>(vector_bytes / sizeof(float));
  const double flops = 2 * lanes * static_cast<double>(kVectorOperations);
  return {.flops_per_s = flops * threads / seconds, .threads = threads};
}

// Bytes per second that all threads together read and write, each copying memory of its own that is
// too large for caches.
double MeasureMemoryRate(const Clock* clock) {
  double least_s = 0;
  int threads = 0;
#pragma omp parallel reduction(+ : threads)
  {
    ++threads;
    // Touched first by the thread that uses them, so that they lie near it.
    const std::vector<float> from(kCopiedFloats, 1);
    std::vector<float> to(kCopiedFloats);
    for (int trial = 0; trial < kTrials; ++trial) {
#pragma omp barrier
      const MonoTime begin = clock->Mono();
      std::copy(from.begin(), from.end(), to.begin());
#pragma omp barrier
#pragma omp single
      {
        const double seconds = absl::ToDoubleSeconds(clock->Mono() - begin);
        least_s = trial == 0 ? seconds : std::min(least_s, seconds);
      }
    }
    CHECK(to.back() == from.back());
  }
  if (least_s <= 0) return 0;
  return 2.0 * sizeof(float) * static_cast<double>(kCopiedFloats) * threads / least_s;
}

}  // namespace

PeakRate MeasurePeakRate(const Clock* clock) {
  PeakRate best = {.bytes_per_s = MeasureMemoryRate(clock)};
  for (int trial = 0; trial < kTrials; ++trial) {
    for (const PeakRate& rate :
         {RunTrial(clock, RunNarrow, sizeof(Narrow)), RunTrial(clock, RunWide, sizeof(Wide))}) {
      best.flops_per_s = std::max(best.flops_per_s, rate.flops_per_s);
      best.threads = std::max(best.threads, rate.threads);
    }
  }
  return best;
}

}  // namespace assay
