#include "common/dataset/linear_theory.h"

#include <cmath>

#include "gtest/gtest.h"

namespace assay::dataset {
namespace {

constexpr Cosmology kPlanck = {.omega_m = 0.3089, .sigma_8 = 0.8159, .n_s = 0.9667, .h = 0.6774};

// D(a) proportional to H(a) * integral of da / (a H)^3: the exact solution for matter and a
// cosmological constant.
double ExactGrowth(double omega_m, double z) {
  const auto hubble = [&](double a) { return std::sqrt(omega_m / (a * a * a) + 1 - omega_m); };
  const auto growth = [&](double a_end) {
    constexpr int kSteps = 20000;
    double sum = 0;
    for (int i = 0; i < kSteps; ++i) {
      const double a = a_end * (i + 0.5) / kSteps;
      sum += std::pow(a * hubble(a), -3);
    }
    return hubble(a_end) * sum * a_end / kSteps;
  };
  return growth(1 / (1 + z)) / growth(1);
}

// The formula is a fit: good to half a percent at the densities observed, and to 2.2 % at 0.1.
TEST(LinearTheoryTest, GrowthFollowsTheExactSolution) {
  for (const double omega_m : {0.1, 0.3, 0.5, 1.0})
    for (const double z : {0.0, 0.5, 1.5, 3.0})
      EXPECT_NEAR(Growth(omega_m, z) / ExactGrowth(omega_m, z), 1, omega_m < 0.3 ? 0.025 : 0.005)
          << omega_m << " " << z;
}

TEST(LinearTheoryTest, StructureInAFlatMatterUniverseGrowsWithTheScaleFactor) {
  EXPECT_NEAR(Growth(1, 3), 0.25, 1e-12);
}

TEST(LinearTheoryTest, TransferFallsFromOne) {
  EXPECT_NEAR(Transfer(kPlanck, 1e-6), 1, 1e-4);
  double last = 1;
  for (double k = 1e-3; k < 100; k *= 1.5) {
    const double transfer = Transfer(kPlanck, k);
    EXPECT_LT(transfer, last);
    EXPECT_GT(transfer, 0);
    last = transfer;
  }
}

TEST(LinearTheoryTest, SpectrumIsScaledToSigma8) {
  for (const double sigma_8 : {0.6, 0.8159, 1.0}) {
    Cosmology cosmology = kPlanck;
    cosmology.sigma_8 = sigma_8;
    EXPECT_NEAR(SphereFluctuation(PowerSpectrum(cosmology), 8), sigma_8, 1e-9);
  }
}

// Known shape of the spectrum for this cosmology: the peak near k = 0.016 h/Mpc with about
// 2.5e4 (Mpc/h)^3, and about 6e3 at k = 0.1 (Planck 2018 results I, figure 19).
TEST(LinearTheoryTest, SpectrumHasTheObservedSize) {
  const PowerSpectrum spectrum(kPlanck);

  EXPECT_NEAR(spectrum(0.016), 2.5e4, 0.2e4);
  EXPECT_NEAR(spectrum(0.1), 6e3, 1e3);
}

}  // namespace
}  // namespace assay::dataset
