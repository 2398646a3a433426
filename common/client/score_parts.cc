#include "common/client/score_parts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace assay::client {
namespace {

std::string PartOf(const rules::RunScore& run, bool has_score, double least_counted_ms) {
  if (!run.run_ms.has_value()) return "no time";
  if (!has_score) return run.compliant ? "passes" : "fails";
  const bool is_fast = *run.run_ms <= least_counted_ms;
  if (run.compliant) return is_fast ? "dropped: fastest" : "dropped: slowest";
  // Round 0.7 counts what met its target, whether it complies or not.
  if (run.reached_target) return is_fast ? "dropped: fastest" : "dropped: slowest";
  return "dropped: did not converge";
}

}  // namespace

std::vector<std::string> PartsOf(std::span<const rules::RunScore> runs,
                                 const rules::WindowScore& window) {
  std::vector<std::string> parts(runs.size());
  double least_counted_ms = INFINITY;
  for (const int index : window.score.counted) {
    parts[static_cast<size_t>(index)] = "counts";
    least_counted_ms =
        std::min(least_counted_ms, runs[static_cast<size_t>(index)].run_ms.value_or(0));
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!parts[i].empty()) continue;
    const bool is_outside = window.score.minutes && !window.contains(static_cast<int>(i));
    parts[i] = is_outside ? "outside the window"
                          : PartOf(runs[i], window.score.minutes.has_value(), least_counted_ms);
  }
  return parts;
}

Json IntervalJson(const rules::ScoreInterval& interval) {
  return {{"low_minutes", interval.low_minutes},
          {"high_minutes", interval.high_minutes},
          {"confidence", interval.confidence},
          {"resamples", interval.resamples}};
}

Json WindowJson(const rules::WindowScore& window) {
  Json json = {{"first_run", window.first + 1},
               {"run_count", window.size},
               {"window_count", window.windows},
               {"scored_window_count", window.windows_scored}};
  if (window.score.minutes) json["score_minutes"] = *window.score.minutes;
  if (std::isfinite(window.median_minutes)) json["median_minutes"] = window.median_minutes;
  if (!window.explanation.empty()) json["explanation"] = window.explanation;
  return json;
}

std::string IntervalText(const rules::ScoreInterval& interval) {
  const bool is_short = interval.high_minutes < 2;
  const double unit = is_short ? 60 : 1;
  return absl::StrFormat("%.2f to %.2f %s in %.0f %% of %d resampled sets",
                         interval.low_minutes * unit, interval.high_minutes * unit,
                         is_short ? "s" : "min", interval.confidence * 100, interval.resamples);
}

}  // namespace assay::client
