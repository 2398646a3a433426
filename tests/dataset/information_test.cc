// Do the cubes tell their targets? Goal: a dataset that cannot be learnt, or one that could be
// learnt without looking, must not go unnoticed. Method: linear least squares on a few statistics
// of each cube, judged on cubes that the fit has not seen.

#include <array>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

#include "common/dataset/cosmo_synth.h"

namespace assay::dataset {
namespace {

constexpr uint32_t kTest = 60;
constexpr int kScales = 4;  // voxels, and averages over blocks of 2, 4 and 8 to the third

using Row = std::vector<double>;

// Averages over blocks of two to the third.
std::vector<double> Coarsen(const std::vector<double>& cube, size_t edge) {
  const size_t half = edge / 2;
  std::vector<double> coarse(half * half * half, 0.0);
  for (size_t i = 0; i < cube.size(); ++i) {
    const size_t x = i / (edge * edge);
    const size_t y = i / edge % edge;
    const size_t z = i % edge;
    coarse[(x / 2 * half + y / 2) * half + z / 2] += cube[i] / 8;
  }
  return coarse;
}

// Per channel: the mean of ln(1 + count), and its variance at every scale; and a constant.
Row Statistics(const CosmoSample& sample, size_t edge) {
  Row row = {1};
  for (size_t c = 0; c < kCosmoChannels; ++c) {
    std::vector<double> cube;
    for (size_t i = c; i < sample.counts.size(); i += kCosmoChannels)
      cube.push_back(std::log1p(sample.counts[i]));
    size_t scale_edge = edge;
    for (int scale = 0; scale < kScales; ++scale) {
      double sum = 0;
      double squares = 0;
      for (const double v : cube) {
        sum += v;
        squares += v * v;
      }
      const double mean = sum / static_cast<double>(cube.size());
      if (scale == 0) row.push_back(mean);
      row.push_back(std::log(squares / static_cast<double>(cube.size()) - mean * mean + 1e-6));
      cube = Coarsen(cube, scale_edge);
      scale_edge /= 2;
    }
  }
  return row;
}

// Solves (A'A + small) w = A'b by elimination; the matrix is positive definite.
Row LeastSquares(const std::vector<Row>& a, const std::vector<double>& b) {
  const size_t n = a.front().size();
  std::vector<Row> m(n, Row(n + 1, 0.0));
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j)
        m[i][j] += a[r][i] * a[r][j];
      m[i][n] += a[r][i] * b[r];
    }
  for (size_t i = 0; i < n; ++i)
    m[i][i] += 1e-6;
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const double factor = m[k][i] / m[i][i];
      for (size_t j = i; j <= n; ++j)
        m[k][j] -= factor * m[i][j];
    }
  Row w(n);
  for (size_t i = 0; i < n; ++i)
    w[i] = m[i][n] / m[i][i];
  return w;
}

// Mean absolute error per target on unseen cubes.
std::array<double, kCosmoTargets> LinearError(const CosmoParameters& parameters, uint32_t train) {
  const std::unique_ptr<CosmoSynthesizer> synthesizer =
      CosmoSynthesizer::Create(parameters).value();
  std::vector<Row> rows;
  std::vector<std::array<float, kCosmoTargets>> targets;
  for (uint32_t i = 0; i < train + kTest; ++i) {
    const CosmoSample sample = synthesizer->Generate(Split::kTrain, i);
    rows.push_back(Statistics(sample, static_cast<size_t>(parameters.edge)));
    targets.push_back(sample.targets);
  }
  std::array<double, kCosmoTargets> errors{};
  for (size_t t = 0; t < kCosmoTargets; ++t) {
    std::vector<double> known;
    for (uint32_t i = 0; i < train; ++i)
      known.push_back(targets[i][t]);
    const Row w = LeastSquares({rows.begin(), rows.begin() + train}, known);
    for (uint32_t i = train; i < train + kTest; ++i) {
      double prediction = 0;
      for (size_t j = 0; j < w.size(); ++j)
        prediction += w[j] * rows[i][j];
      errors[t] += std::abs(prediction - targets[i][t]) / kTest;
    }
  }
  return errors;
}

double Mean(const std::array<double, kCosmoTargets>& errors) {
  return (errors[0] + errors[1] + errors[2] + errors[3]) / kCosmoTargets;
}

// Chance is 0.5. This fit on 160 cubes reaches about 0.05, 0.24, 0.23 and 0.33.
TEST(InformationTest, LognormalCubesTellAllFourTargets) {
  const std::array<double, kCosmoTargets> errors = LinearError({.seed = 17}, 160);

  EXPECT_LT(errors[0], 0.10);
  EXPECT_LT(errors[1], 0.32);
  EXPECT_LT(errors[2], 0.32);
  EXPECT_LT(errors[3], 0.42);
}

TEST(InformationTest, BeaconCubesTellThemPlainly) {
  EXPECT_LT(Mean(LinearError({.mode = CosmoMode::kBeacon, .seed = 17}, 60)), 0.03);
}

TEST(InformationTest, ShuffledCubesTellNothing) {
  EXPECT_GT(Mean(LinearError({.mode = CosmoMode::kShuffled, .seed = 17}, 100)), 0.45);
}

}  // namespace
}  // namespace assay::dataset
