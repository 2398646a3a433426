#include "common/dataset/poisson.h"

#include <cmath>
#include <map>

#include "gtest/gtest.h"

namespace assay::dataset {
namespace {

constexpr uint64_t kDraws = 200000;

TEST(PoissonTest, HasTheMeanAndVarianceOfTheDistribution) {
  for (const double mean : {0.02, 0.7, 5.0, 9.99, 10.01, 50.0, 6454.0}) {
    const Stream stream(11, Purpose::kTest);
    double sum = 0;
    double squares = 0;
    for (uint64_t i = 0; i < kDraws; ++i) {
      const double x = Poisson(mean, stream, i, kDraws) - mean;
      sum += x;
      squares += x * x;
    }

    // Five standard errors: of the mean, sqrt(mean / n); of the variance, sqrt((mean + 2
    // mean^2)/n).
    EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(mean / kDraws)) << mean;
    EXPECT_NEAR(squares / kDraws, mean, 5 * std::sqrt((mean + 2 * mean * mean) / kDraws)) << mean;
  }
}

// Chi-squared over the values that are expected at least 20 times, for one mean of each method.
TEST(PoissonTest, FollowsTheDistribution) {
  for (const double mean : {4.0, 12.0, 40.0}) {
    const Stream stream(5, Purpose::kTest);
    std::map<int, double> counts;
    for (uint64_t i = 0; i < kDraws; ++i)
      ++counts[Poisson(mean, stream, i, kDraws)];

    double chi_squared = 0;
    int bins = 0;
    for (int k = 0; k < 200; ++k) {
      const double expected = kDraws * std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
      if (expected < 20) continue;
      chi_squared += std::pow(counts[k] - expected, 2) / expected;
      ++bins;
    }

    EXPECT_GT(bins, 10);
    EXPECT_LT(chi_squared, bins + 5 * std::sqrt(2.0 * bins)) << mean;
  }
}

TEST(PoissonTest, ZeroMeanGivesZero) {
  EXPECT_EQ(Poisson(0, Stream(1, Purpose::kTest), 3, 10), 0);
}

}  // namespace
}  // namespace assay::dataset
