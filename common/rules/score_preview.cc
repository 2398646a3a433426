#include "common/rules/score_preview.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace assay::rules {
namespace {

// The score if the remaining runs are all as `like`.
std::optional<double> ScoreWith(const Scoring& scoring, std::span<const RunScore> ended,
                                int remaining, const RunScore& like) {
  std::vector<RunScore> runs(ended.begin(), ended.end());
  runs.insert(runs.end(), static_cast<size_t>(remaining), like);
  return Score(scoring, runs).minutes;
}

RunScore Converged(double run_ms) {
  return {.compliant = true, .reached_target = true, .run_ms = run_ms};
}

// The fastest and the slowest run that counts in this round.
struct Extremes {
  std::optional<double> fastest_ms, slowest_ms;
};

Extremes ExtremesOf(const Scoring& scoring, std::span<const RunScore> ended) {
  Extremes extremes;
  for (const RunScore& run : ended) {
    if (!HasTime(scoring.counts, run)) continue;
    extremes.fastest_ms = std::min(extremes.fastest_ms.value_or(*run.run_ms), *run.run_ms);
    extremes.slowest_ms = std::max(extremes.slowest_ms.value_or(*run.run_ms), *run.run_ms);
  }
  return extremes;
}

}  // namespace

ScorePreview PreviewScore(const Scoring& scoring, std::span<const RunScore> ended, int remaining) {
  ScorePreview preview = {.done = static_cast<int>(ended.size()), .remaining = remaining};
  preview.least_minutes = ScoreWith(scoring, ended, remaining, Converged(0));
  if (!preview.least_minutes) {
    preview.is_lost = true;
    preview.note = Score(scoring, ended).reason;
    return preview;
  }
  // A run that fails, or takes forever, is left out as the slowest: but only one, and only if no
  // other was.
  const int dropped = Score(scoring, ended).dropped;
  if (remaining == 0 || (remaining == 1 && dropped == 0))
    preview.most_minutes = ScoreWith(scoring, ended, remaining, RunScore{});
  if (!preview.most_minutes) {
    preview.note = absl::StrCat("no upper bound: of ", remaining, " runs to come and ", dropped,
                                " that failed, only one is left out of the mean");
  }
  const Extremes extremes = ExtremesOf(scoring, ended);
  if (extremes.fastest_ms) {
    preview.if_like_fastest_minutes =
        ScoreWith(scoring, ended, remaining, Converged(*extremes.fastest_ms));
    preview.if_like_slowest_minutes =
        ScoreWith(scoring, ended, remaining, Converged(*extremes.slowest_ms));
  }
  return preview;
}

}  // namespace assay::rules
