// Sets of runs that measure the same thing again and again: whether each is what those before it
// let expect, and where the level has changed. Pure functions.
//
// Seconds per epoch tell of machine and program; epochs to target of hyperparameters, data and
// arithmetic. So the two are judged apart.

#ifndef COMMON_ANALYSIS_SERIES_H_
#define COMMON_ANALYSIS_SERIES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/analysis/change_points.h"
#include "common/analysis/prediction.h"
#include "common/analysis/set_comparison.h"

namespace assay::analysis {

// What sets must have in common to belong to one series.
struct SeriesKey {
  std::string system;
  std::string benchmark;
  std::string division;
  std::string round;       // rule set
  std::string scaling;     // strong | weak
  int64_t scale = 0;       // accelerators of a run, or nodes where there are none
  int64_t batch_size = 0;  // global; 0: not logged

  auto operator<=>(const SeriesKey&) const = default;
};

// "cosmoflow on lab_x, hpc-3.0.0 closed strong, 64 units, batch 64".
std::string TextOf(const SeriesKey& key);

// A set as one measurement: geometric means over its counted runs (CountedRuns).
struct SeriesPoint {
  std::string set;      // e-42
  int64_t time_ms = 0;  // the first run_start
  double epoch_seconds = 0;
  double epochs = 0;
  int run_count = 0;  // counted
};

// nullopt if no run has a time.
std::optional<SeriesPoint> PointOf(const RunSet& set, int64_t time_ms);

enum class Standing { kTooFew, kExpected, kLower, kHigher };
absl::string_view NameOf(Standing standing);  // "too_few", "expected", "lower", "higher"

struct Judgement {
  Standing standing = Standing::kTooFew;
  int earlier_count = 0;                       // since the last change
  std::optional<PredictionInterval> interval;  // none: too few
};

// What people say of a change: that there is one at a set, or that there is none.
struct ChangeDecision {
  enum class Kind { kMark, kVeto };
  Kind kind = Kind::kMark;
  std::string set;                 // the first after the change
  std::optional<Measure> measure;  // none: both
  std::string reason, author, organization;
  int64_t time_ms = 0;
};

struct Change {
  int first = 0;                           // position of the first set after it
  double ratio = 1;                        // of the level after it, up to the next, to that before
  std::optional<double> p_value;           // of one that was found
  bool is_vetoed = false;                  // then it ends no level
  std::optional<ChangeDecision> decision;  // the last that was made of it
};

struct MeasureHistory {
  Measure measure = Measure::kEpochSeconds;
  std::vector<Judgement> judgements;  // of each point
  std::vector<Change> changes;        // by position, vetoed ones too
};

struct Series {
  SeriesKey key;
  std::vector<SeriesPoint> points;       // by time
  std::vector<MeasureHistory> measures;  // seconds per epoch, epochs
};

struct SeriesOptions {
  double confidence = 0.999;  // of the prediction intervals
  int earlier_min = 5;        // sets before a judgement
  ChangeOptions changes;
};

// How far from the set of a veto the change may be that it is about: where a change lies can move
// by a set or two when later ones come.
inline constexpr int kVetoReach = 2;

// Judges a series. `points` in any order. A set is judged by those since the last change before it
// that nobody has vetoed. Of several decisions about one set and measure the last counts; those of
// sets that are not in the series are of others.
Series JudgeSeries(SeriesKey key, std::vector<SeriesPoint> points,
                   std::span<const ChangeDecision> decisions, const SeriesOptions& options);

// The value of a point; minutes are those of its means.
double ValueOf(const SeriesPoint& point, Measure measure);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_SERIES_H_
