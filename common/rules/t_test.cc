#include "common/rules/t_test.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "common/log.h"
#include <boost/math/distributions/students_t.hpp>

namespace assay::rules {
namespace {

// Errors give NaN: Boost shall not throw.
using Quiet = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;

double SumOfFew(std::span<const double> values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum;
}

}  // namespace

double OneSidedPValue(const SampleSummary& a, const SampleSummary& b) {
  const double count_a = a.count;
  const double count_b = b.count;
  const double freedom = count_a + count_b - 2;
  CHECK(freedom > 0) << "count_a=" << a.count << " count_b=" << b.count;
  const double pooled =
      ((count_a - 1) * a.stdev * a.stdev + (count_b - 1) * b.stdev * b.stdev) / freedom;
  const double error = std::sqrt(pooled * (1 / count_a + 1 / count_b));
  if (error == 0) return a.mean >= b.mean ? 1 : 0;
  const double t = (a.mean - b.mean) / error;
  return boost::math::cdf(boost::math::students_t_distribution<double, Quiet>(freedom), t);
}

double NumpySum(std::span<const double> values) {
  constexpr size_t kLanes = 8;
  constexpr size_t kBlock = 128;
  const size_t count = values.size();
  if (count < kLanes) return SumOfFew(values);
  if (count > kBlock) {
    const size_t half = count / 2 - count / 2 % kLanes;
    return NumpySum(values.first(half)) + NumpySum(values.subspan(half));
  }
  std::array<double, kLanes> r{};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane)
      r[lane] += values[i + lane];
  }
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < count; ++i)
    sum += values[i];
  return sum;
}

double NumpyMean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return NumpySum(values) / static_cast<double>(values.size());
}

double NumpyStdev(std::span<const double> values) {
  const double mean = NumpyMean(values);
  std::vector<double> squares;
  squares.reserve(values.size());
  for (const double value : values)
    squares.push_back((value - mean) * (value - mean));
  return std::sqrt(NumpyMean(squares));
}

}  // namespace assay::rules
