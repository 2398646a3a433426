#include "common/dataset/cosmo_synth.h"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/sha256.h"
#include "tests/support/status_matchers.h"

namespace assay::dataset {
namespace {

using ::assay::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;

std::unique_ptr<CosmoSynthesizer> Make(const CosmoParameters& parameters) {
  return CosmoSynthesizer::Create(parameters).value();
}

std::string Digest(const CosmoSample& sample) {
  const absl::string_view counts(reinterpret_cast<const char*>(sample.counts.data()),
                                 sample.counts.size() * sizeof(int16_t));
  const absl::string_view targets(reinterpret_cast<const char*>(sample.targets.data()),
                                  sizeof(sample.targets));
  return Sha256Hex(std::string(counts) + std::string(targets));
}

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments ChannelMoments(const CosmoSample& sample, size_t channel) {
  double sum = 0;
  double squares = 0;
  for (size_t i = channel; i < sample.counts.size(); i += kCosmoChannels) {
    sum += sample.counts[i];
    squares += static_cast<double>(sample.counts[i]) * sample.counts[i];
  }
  const double voxels = static_cast<double>(sample.counts.size()) / kCosmoChannels;
  return {sum / voxels, squares / voxels - sum * sum / (voxels * voxels)};
}

// Published datasets must stay reproducible: if this fails, the generator's name has to change.
TEST(CosmoSynthTest, SamplesNeverChange) {
  struct Case {
    CosmoMode mode;
    const char* digest;
  };
  const Case cases[] = {
      {CosmoMode::kLognormal, "7febfb60f2ae5280ed6df47406616759be6b726e577418b3b258a83e5c4a1c9d"},
      {CosmoMode::kZeldovich, "67f1b8df4c34f86ac67de6f4f45a0f9cedb8c218e6db17b8d522430f333b93e5"},
      {CosmoMode::kBeacon, "57cff66051ce18f947b7d53ba7bcb05a182e1201fcce71166bb757cedb8fdf99"},
      {CosmoMode::kShuffled, "3c8ed8e578abbe003f03b8b19f1a12e915bbd6fed82dbf08f7d8e5fd775c4e1a"},
  };

  for (const Case& c : cases)
    EXPECT_EQ(Digest(Make({.mode = c.mode, .seed = 42})->Generate(Split::kTrain, 7)), c.digest)
        << CosmoModeName(c.mode);
}

TEST(CosmoSynthTest, ASampleDoesNotDependOnTheOthers) {
  const CosmoParameters parameters = {.seed = 3};
  const std::unique_ptr<CosmoSynthesizer> used = Make(parameters);
  used->Generate(Split::kTrain, 0);
  used->Generate(Split::kValidation, 5);

  EXPECT_EQ(Digest(used->Generate(Split::kTrain, 5)),
            Digest(Make(parameters)->Generate(Split::kTrain, 5)));
}

TEST(CosmoSynthTest, SeedSplitAndIndexAllMatter) {
  const auto digest = [](uint64_t seed, Split split, uint32_t index) {
    return Digest(Make({.seed = seed})->Generate(split, index));
  };
  const std::string base = digest(1, Split::kTrain, 1);

  EXPECT_NE(base, digest(2, Split::kTrain, 1));
  EXPECT_NE(base, digest(1, Split::kValidation, 1));
  EXPECT_NE(base, digest(1, Split::kTrain, 2));
}

TEST(CosmoSynthTest, TargetsAreUniformAndPredictingTheirMeanErrsByOneHalf) {
  constexpr int kSamples = 20000;
  double sum = 0;
  double error = 0;
  for (uint32_t i = 0; i < kSamples; ++i) {
    for (const float y : CosmoTargets({.seed = 9}, Split::kTrain, i)) {
      ASSERT_GE(y, -1);
      ASSERT_LT(y, 1);
      sum += y;
      error += std::abs(y);
    }
  }

  // Five standard errors of 80,000 uniform numbers.
  EXPECT_NEAR(sum / (4 * kSamples), 0, 0.0103);
  EXPECT_NEAR(error / (4 * kSamples), 0.5, 0.0052);
}

TEST(CosmoSynthTest, TargetsSpanTheRanges) {
  const Cosmology low = CosmologyFor(kWideRanges, {-1, -1, -1, -1});
  const Cosmology high = CosmologyFor(kWideRanges, {1, 1, 1, 1});

  EXPECT_DOUBLE_EQ(low.omega_m, 0.1);
  EXPECT_DOUBLE_EQ(high.omega_m, 0.5);
  EXPECT_DOUBLE_EQ(low.sigma_8, 0.6);
  EXPECT_DOUBLE_EQ(high.sigma_8, 1.0);
  EXPECT_DOUBLE_EQ(low.n_s, 0.7);
  EXPECT_DOUBLE_EQ(high.n_s, 1.3);
  EXPECT_DOUBLE_EQ(low.h, 0.5);
  EXPECT_DOUBLE_EQ(high.h, 0.9);
}

// Sum of P(k) / L^3 over the modes of the box, by the definition.
double FieldVariance(const Cosmology& cosmology, int edge, double box) {
  const PowerSpectrum spectrum(cosmology);
  double sum = 0;
  for (int x = -edge / 2; x < edge / 2; ++x)
    for (int y = -edge / 2; y < edge / 2; ++y)
      for (int z = -edge / 2; z < edge / 2; ++z) {
        const double n = std::sqrt(x * x + y * y + z * z);
        if (n > 0) sum += spectrum(2 * std::numbers::pi * n / box);
      }
  return sum / (box * box * box);
}

// Goal: the counts have the mean and the variance that theory gives to Poisson numbers in a
// lognormal field: mean 16, and var / mean^2 - 1 / mean = exp(D^2 v) - 1. Method: the earliest
// channel, where the field is nearly Gaussian and one cube's sample variance is small.
TEST(CosmoSynthTest, CountsHaveTheVarianceThatTheoryGives) {
  const CosmoParameters parameters = {.seed = 21};
  const std::unique_ptr<CosmoSynthesizer> synthesizer = Make(parameters);
  constexpr int kSamples = 12;
  double ratio = 0;
  for (uint32_t i = 0; i < kSamples; ++i) {
    const CosmoSample sample = synthesizer->Generate(Split::kTrain, i);
    const Cosmology cosmology = CosmologyFor(parameters.ranges, sample.targets);
    const double growth = Growth(cosmology.omega_m, 3);
    const double want = growth * growth *
                        FieldVariance(cosmology, parameters.edge,
                                      cosmology.h * parameters.cell_mpc * parameters.edge);
    const Moments moments = ChannelMoments(sample, 3);
    const double got =
        std::log1p(moments.variance / (moments.mean * moments.mean) - 1 / moments.mean);
    EXPECT_NEAR(moments.mean, 16, 1.0);
    EXPECT_NEAR(got / want, 1, 0.25);
    ratio += got / want / kSamples;
  }

  EXPECT_NEAR(ratio, 1, 0.06);
}

TEST(CosmoSynthTest, StructureGrowsWithTime) {
  for (const CosmoMode mode : {CosmoMode::kLognormal, CosmoMode::kZeldovich}) {
    const CosmoSample sample = Make({.mode = mode, .seed = 2})->Generate(Split::kTrain, 0);
    for (size_t c = 1; c < kCosmoChannels; ++c)
      EXPECT_GT(ChannelMoments(sample, c - 1).variance, ChannelMoments(sample, c).variance);
  }
}

TEST(CosmoSynthTest, ZeldovichKeepsEveryParticle) {
  const std::unique_ptr<CosmoSynthesizer> synthesizer = Make({.mode = CosmoMode::kZeldovich});
  for (uint32_t i = 0; i < 5; ++i)
    for (size_t c = 0; c < kCosmoChannels; ++c)
      EXPECT_EQ(ChannelMoments(synthesizer->Generate(Split::kTrain, i), c).mean, 1.0);
}

TEST(CosmoSynthTest, BeaconMeansTellTheTargets) {
  const std::unique_ptr<CosmoSynthesizer> synthesizer = Make({.mode = CosmoMode::kBeacon});
  for (uint32_t i = 0; i < 20; ++i) {
    const CosmoSample sample = synthesizer->Generate(Split::kTrain, i);
    for (size_t c = 0; c < kCosmoChannels; ++c)
      EXPECT_NEAR(std::log1p(ChannelMoments(sample, c).mean) / 2 - 1, sample.targets[c], 0.02);
  }
}

TEST(CosmoSynthTest, ShuffledCubesAreLognormalCubesWithOtherTargets) {
  const CosmoSample real = Make({.seed = 6})->Generate(Split::kTrain, 1);
  const CosmoSample shuffled =
      Make({.mode = CosmoMode::kShuffled, .seed = 6})->Generate(Split::kTrain, 1);

  EXPECT_EQ(real.counts, shuffled.counts);
  EXPECT_NE(real.targets, shuffled.targets);
}

TEST(CosmoSynthTest, LargerCubesWork) {
  const CosmoSample sample = Make({.edge = 96})->Generate(Split::kTrain, 0);

  EXPECT_EQ(static_cast<int64_t>(sample.counts.size()), CosmoValues(96));
  EXPECT_NEAR(ChannelMoments(sample, 3).mean, 16, 0.5);
}

TEST(CosmoSynthTest, RefusesOtherCubes) {
  for (const int edge : {0, 16, 33, 160})
    EXPECT_THAT(CosmoSynthesizer::Create({.edge = edge}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("multiple of 32")));
  EXPECT_THAT(CosmoSynthesizer::Create({.cell_mpc = std::nan("")}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseCosmoMode("nonsense"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("zeldovich")));
}

}  // namespace
}  // namespace assay::dataset
