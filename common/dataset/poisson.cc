#include "common/dataset/poisson.h"

#include <cmath>

namespace assay::dataset {
namespace {

constexpr double kRejectionFrom = 10;
// The chance to come so far is below 1e-60.
constexpr uint64_t kMaxAttempts = 100;

// Counts up the distribution until it exceeds a uniform number.
int32_t ByInversion(double mean, uint64_t bits) {
  const double uniform = static_cast<double>(bits >> 11) * 0x1p-53;
  double probability = std::exp(-mean);
  double below = probability;
  int32_t k = 0;
  // The second condition ends the loop where rounding keeps `below` under the largest uniform.
  while (uniform >= below && probability > 0) {
    ++k;
    probability *= mean / k;
    below += probability;
  }
  return k;
}

double LogFactorial(double k) {
  int sign = 0;
  return lgamma_r(k + 1, &sign);  // not lgamma: that writes a global
}

// Constants of the rejection's hat, named as in the paper.
struct Hat {
  explicit Hat(double mean)
      : b(0.931 + 2.53 * std::sqrt(mean)),
        a(-0.059 + 0.02483 * b),
        inverse_alpha(1.1239 + 1.1328 / (b - 3.4)),
        v_r(0.9277 - 3.6224 / (b - 2)) {}
  double b;
  double a;
  double inverse_alpha;
  double v_r;
};

// One attempt of PTRS; negative if it is rejected.
double Attempt(double mean, const Hat& hat, uint64_t bits) {
  // Both uniforms lie strictly inside (0, 1).
  const double u = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32 - 0.5;
  const double v = (static_cast<double>(bits & 0xFFFFFFFFU) + 0.5) * 0x1p-32;
  const double u_s = 0.5 - std::abs(u);
  const double k = std::floor((2 * hat.a / u_s + hat.b) * u + mean + 0.43);
  if (u_s >= 0.07 && v <= hat.v_r) return k;
  if (k < 0 || (u_s < 0.013 && v > u_s)) return -1;
  const double left = std::log(v * hat.inverse_alpha / (hat.a / (u_s * u_s) + hat.b));
  return left <= k * std::log(mean) - mean - LogFactorial(k) ? k : -1;
}

}  // namespace

int32_t Poisson(double mean, const Stream& stream, uint64_t index, uint64_t stride) {
  if (mean < kRejectionFrom) return ByInversion(mean, stream.Bits64(index));
  const Hat hat(mean);
  for (uint64_t attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const double k = Attempt(mean, hat, stream.Bits64(index + attempt * stride));
    if (k >= 0) return static_cast<int32_t>(k);
  }
  return static_cast<int32_t>(mean);
}

}  // namespace assay::dataset
