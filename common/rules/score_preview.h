// What a score may still become while runs are going.

#ifndef COMMON_RULES_SCORE_PREVIEW_H_
#define COMMON_RULES_SCORE_PREVIEW_H_

#include <optional>
#include <span>
#include <string>

#include "common/rules/ruleset.h"
#include "common/rules/score.h"

namespace assay::rules {

// A bound is absent where there is none: where too little is known, or where failures to come could
// leave the set without a score.
struct ScorePreview {
  int done = 0;       // runs that have ended
  int remaining = 0;  // runs still to end
  // No outcome of the remaining runs gives less, or more: the fastest takes no time at all, the
  // slowest never ends.
  std::optional<double> least_minutes;
  std::optional<double> most_minutes;
  // The score if every remaining run is like the fastest, or the slowest, that has counted so far.
  std::optional<double> if_like_fastest_minutes;
  std::optional<double> if_like_slowest_minutes;
  bool is_lost = false;  // whatever the remaining runs do, too many have failed
  std::string note;      // one sentence: what keeps a bound from being known, or that it is lost
};

// `ended`: the runs that have ended, in any order; `remaining`: how many have not.
ScorePreview PreviewScore(const Scoring& scoring, std::span<const RunScore> ended, int remaining);

}  // namespace assay::rules

#endif  // COMMON_RULES_SCORE_PREVIEW_H_
