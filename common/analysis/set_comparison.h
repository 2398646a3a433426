// Two sets of runs beside each other: whether one is faster, and whether that is the speed of the
// machine or the luck of convergence.
//
// Time to solution is epochs to the target times seconds per epoch, and most of its noise is that
// of the epochs (median coefficients of variation in the 90 published HPC sets: 5.4 % of the
// epochs, 2.1 % of the seconds per epoch). So all three are compared, each with a bootstrap
// interval of the ratio of the two sets' olympic means. Deterministic: the same runs and seed give
// the same intervals on every machine. Pure functions.

#ifndef COMMON_ANALYSIS_SET_COMPARISON_H_
#define COMMON_ANALYSIS_SET_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay::analysis {

// What sets are compared by.
enum class Measure { kMinutes, kEpochs, kEpochSeconds };

// "minutes", "epochs", "epoch_seconds": as JSON and options have it.
absl::string_view NameOf(Measure measure);
// "time to solution", "epochs to target", "seconds per epoch".
absl::string_view TextOf(Measure measure);
// The measure of that name.
std::optional<Measure> MeasureOf(absl::string_view name);

// A run that reached the target. Both are above 0.
struct TimedRun {
  double minutes = 0;  // from run_start to run_stop
  double epochs = 0;   // that it trained

  // All that is on the clock is shared out among the epochs, staging and start-up too, so that
  // minutes are epochs times seconds per epoch.
  double epoch_seconds() const { return minutes * 60 / epochs; }
};

double ValueOf(const TimedRun& run, Measure measure);

struct RunSet {
  std::string name;  // e-42
  std::vector<TimedRun> runs;
  int failed_count = 0;  // runs of the set without a time that counts; one is its slowest
  bool is_weak = false;  // instances side by side: none is left out
};

// The runs of a set that its olympic mean is of, by time: without the fastest, and without the
// slowest unless a failed one stands for it. All of a weak set, or of fewer than three.
std::vector<TimedRun> CountedRuns(const RunSet& set);

struct MeasureComparison {
  Measure measure = Measure::kMinutes;
  double a = 0;  // olympic mean: of the runs that count by time, for every measure
  double b = 0;
  double ratio = 0;            // b / a
  std::optional<double> low;   // interval of the ratio; none: too few runs
  std::optional<double> high;  //
  bool is_significant() const { return low && (*low > 1 || *high < 1); }
};

struct ComparisonOptions {
  double confidence = 0.95;  // in (0, 1)
  int resamples = 4000;      // at least 1
  uint64_t seed = 1;
};

struct SetComparison {
  std::string a, b;  // names
  int runs_a = 0, runs_b = 0;
  double confidence = 0;
  uint64_t seed = 0;
  std::vector<MeasureComparison> measures;  // minutes, epochs, seconds per epoch; none: no run

  int insignificant_count() const;
};

inline constexpr int kComparedRunsMin = 3;  // of each set, for an interval

// Resamples the runs of each set with replacement and takes the ratio of the olympic means. The
// percentiles are widened for the size of the sets, as a plain percentile interval of so few runs
// is too narrow (Hesterberg, "What Teachers Should Know about the Bootstrap", 2015, section 4.3).
// Runs that failed stay failed: the comparison is about times, not about convergence.
SetComparison CompareSets(const RunSet& a, const RunSet& b, const ComparisonOptions& options);

// The comparison in a sentence: "e-2 is 12 % faster than e-1 (95 %: 8 to 16 %), because its epochs
// are shorter; the epochs to target do not differ significantly." x % faster takes x % less time,
// x % slower x % more; from a factor of 1.5 on it says the factor.
std::string ComparisonSentence(const SetComparison& comparison);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_SET_COMPARISON_H_
