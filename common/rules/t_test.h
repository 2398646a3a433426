// Student's t-test of two samples with one variance, as the reference convergence points use it
// (rules specification, section 4.5). Pure functions.

#ifndef COMMON_RULES_T_TEST_H_
#define COMMON_RULES_T_TEST_H_

#include <span>

namespace assay::rules {

// What a test needs to know of a sample.
struct SampleSummary {
  double mean = 0;
  double stdev = 0;
  int count = 0;
};

// The one-sided p-value of "the mean of `a` is not below that of `b`": small where `a` is
// significantly smaller. Both samples are taken to have the same variance, pooled over the two.
// Without any spread it is 1 where a.mean >= b.mean, else 0. CHECKs that the counts add up to at
// least 3.
double OneSidedPValue(const SampleSummary& a, const SampleSummary& b);

// The sum of `values` in the order in which NumPy adds (pairwise, eight at a time), so that means
// agree with the reference tools to the last bit.
double NumpySum(std::span<const double> values);

// NumpySum / count; NaN of nothing.
double NumpyMean(std::span<const double> values);

// The population's standard deviation (divided by the count), summed in the same order.
double NumpyStdev(std::span<const double> values);

}  // namespace assay::rules

#endif  // COMMON_RULES_T_TEST_H_
