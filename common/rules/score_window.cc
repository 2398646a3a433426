#include "common/rules/score_window.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay::rules {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double RankedMinutes(const Scoring& scoring, const RunScore& run) {
  return HasTime(scoring.counts, run) ? *run.run_ms / kMsPerMinute : kNever;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1 || !std::isfinite(values[middle])) return values[middle];
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

// How far a score is from the median; where that is infinite, the slowest is the nearest.
double DistanceTo(double median, double minutes) {
  return std::isfinite(median) ? std::fabs(minutes - median) : -minutes;
}

std::string Explain(const WindowScore& chosen, size_t runs) {
  return absl::StrFormat(
      "runs %d to %d of %d: of %d windows of %d consecutive runs, %d with a score, theirs is "
      "nearest the median of all runs, %s",
      chosen.first + 1, chosen.first + chosen.size, runs, chosen.windows, chosen.size,
      chosen.windows_scored,
      std::isfinite(chosen.median_minutes) ? absl::StrFormat("%.3f min", chosen.median_minutes)
                                           : "which never ended");
}

}  // namespace

WindowScore ScoreWindows(const Scoring& scoring, std::span<const RunScore> runs,
                         int runs_required) {
  const int count = static_cast<int>(runs.size());
  std::vector<double> ranked;
  for (const RunScore& run : runs)
    ranked.push_back(RankedMinutes(scoring, run));
  WindowScore best;
  best.size = count;
  if (!ranked.empty()) best.median_minutes = Median(ranked);
  if (runs_required < 1 || count <= runs_required) {
    best.score = Score(scoring, runs);
    return best;
  }
  best.size = runs_required;
  best.windows = count - runs_required + 1;
  for (int first = 0; first < best.windows; ++first) {
    TimeToSolution score = Score(
        scoring, runs.subspan(static_cast<size_t>(first), static_cast<size_t>(runs_required)));
    if (!score.minutes) continue;
    for (int& position : score.counted)
      position += first;
    const double gain = ++best.windows_scored == 1
                            ? 1
                            : DistanceTo(best.median_minutes, *best.score.minutes) -
                                  DistanceTo(best.median_minutes, *score.minutes);
    if (gain > 0 || (gain == 0 && *score.minutes > *best.score.minutes)) {
      best.first = first;
      best.score = std::move(score);
    }
  }
  if (best.windows_scored == 0) {
    best.score.reason = absl::StrCat("none of the ", best.windows, " windows of ", runs_required,
                                     " consecutive runs has a score: in each too many runs failed");
    best.score.dropped = static_cast<int>(
        std::count_if(ranked.begin(), ranked.end(), [](double x) { return !std::isfinite(x); }));
  } else {
    best.explanation = Explain(best, runs.size());
  }
  return best;
}

}  // namespace assay::rules
