// The score of a set with more runs than the round demands: which N consecutive ones count
// (docs/adr/0059). Nobody chooses: a window is given by the runs and their order.

#ifndef COMMON_RULES_SCORE_WINDOW_H_
#define COMMON_RULES_SCORE_WINDOW_H_

#include <span>
#include <string>

#include "common/rules/ruleset.h"
#include "common/rules/score.h"

namespace assay::rules {

struct WindowScore {
  TimeToSolution score;       // positions in `counted` are those of the whole set
  int first = 0;              // position of the window's first run
  int size = 0;               // its runs; all of them where the set has no more than demanded
  int windows = 0;            // how many there were
  int windows_scored = 0;     // of which so many had a score
  double median_minutes = 0;  // of all runs, infinite ones included; what decides
  std::string explanation;    // one sentence; empty where there was nothing to choose

  bool contains(int position) const { return position >= first && position < first + size; }
};

// `runs` in the order in which they were started. Of all windows of `runs_required` consecutive
// runs that have a score, the one whose score is nearest the median of all runs' times; a run that
// failed counts as infinitely slow. Of two equally near the slower, then the earlier one.
WindowScore ScoreWindows(const Scoring& scoring, std::span<const RunScore> runs, int runs_required);

}  // namespace assay::rules

#endif  // COMMON_RULES_SCORE_WINDOW_H_
