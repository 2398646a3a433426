#include "worker/engine/matrix_rate.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "common/log.h"
#include "worker/engine/backends/onednn/gemm.h"

namespace assay {

MatrixRate MeasureMatrixRate(absl::Duration duration, const Clock* clock) {
  constexpr size_t kElements = size_t{kMatrixRateSize} * kMatrixRateSize;
  constexpr double kFlops = 2.0 * kMatrixRateSize * static_cast<double>(kElements);
  const std::vector<float> a(kElements, 0.5F);
  const std::vector<float> b(kElements, 2.0F);
  std::vector<float> c(kElements);
  const Gemm gemm{.m = kMatrixRateSize, .n = kMatrixRateSize, .k = kMatrixRateSize};
  gemm.Run(a.data(), b.data(), c.data());  // makes the kernel and starts the threads
  MatrixRate rate;
  const MonoTime begin = clock->Mono();
  absl::Duration passed;
  do {
    gemm.Run(a.data(), b.data(), c.data());
    ++rate.products;
    passed = clock->Mono() - begin;
  } while (passed < duration);
  CHECK(c.front() == kMatrixRateSize && c.back() == kMatrixRateSize) << "the product is wrong";
  const double seconds = absl::ToDoubleSeconds(passed);
  if (seconds > 0) rate.flops_per_s = kFlops * rate.products / seconds;
  return rate;
}

}  // namespace assay
