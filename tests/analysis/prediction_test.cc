#include "common/analysis/prediction.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace assay::analysis {
namespace {

constexpr double kTolerance = 1e-9;  // relative

// statsmodels 0.15.0: exp of OLS(log(values), ones).fit().get_prediction([1]).summary_frame(alpha),
// obs_ci_lower and obs_ci_upper.
TEST(PredictionTest, AgreesWithStatsmodels) {
  const std::vector<double> values = {101.2, 99.7, 100.4, 103.1, 98.8, 100.9};
  struct Case {
    size_t count;
    double confidence, low, high;
  };
  for (const Case& one : {Case{5, 0.999, 86.38026343972666, 117.22911144143035},
                          Case{5, 0.95, 95.79498533094923, 105.70784570958384},
                          Case{6, 0.999, 90.39271390577706, 112.12573276882408},
                          Case{6, 0.95, 96.69638656703835, 104.81621540864117}}) {
    const auto interval = PredictNext(std::span(values).first(one.count), one.confidence, 0);

    ASSERT_TRUE(interval.has_value());
    EXPECT_NEAR(interval->low / one.low, 1, kTolerance);
    EXPECT_NEAR(interval->high / one.high, 1, kTolerance);
  }
}

// scipy 1.17.1: stats.t.ppf(0.9995, df). Values whose logarithms have mean 0 and deviation 1.
TEST(PredictionTest, HasScipysQuantiles) {
  struct Case {
    int count;
    double quantile;
  };
  for (const Case& one : {Case{5, 8.610301581379522}, Case{10, 4.780912585931217},
                          Case{20, 3.883405852592131}, Case{50, 3.5004428913674035}}) {
    const double n = one.count;
    // n - 2 zeros and a pair at either side whose sample deviation is 1.
    std::vector<double> values(static_cast<size_t>(one.count), 1.0);
    values[0] = std::exp(std::sqrt((n - 1) / 2));
    values[1] = 1 / values[0];

    const auto interval = PredictNext(values, 0.999, 0);

    EXPECT_NEAR(std::log(interval->high) / std::sqrt(1 + 1 / n), one.quantile, 1e-6);
    EXPECT_NEAR(std::log(interval->low) / std::sqrt(1 + 1 / n), -one.quantile, 1e-6);
  }
}

TEST(PredictionTest, EqualValuesHaveTheLeastSpread) {
  const std::vector<double> equal(5, 24.0);

  EXPECT_EQ(PredictNext(equal, 0.999, 0)->low, PredictNext(equal, 0.999, 0)->high);
  EXPECT_NEAR(PredictNext(equal, 0.999, 0.01)->high / 24,
              std::exp(0.01 * 8.610301581379522 * std::sqrt(1.2)), 1e-9);
}

TEST(PredictionTest, OneValueLetsExpectNothing) {
  EXPECT_FALSE(PredictNext(std::vector<double>{3}, 0.999, 0).has_value());
  EXPECT_FALSE(PredictNext({}, 0.999, 0).has_value());
}

}  // namespace
}  // namespace assay::analysis
