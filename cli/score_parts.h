// What became of each run in a score, and the columns that show it.

#ifndef CLI_SCORE_PARTS_H_
#define CLI_SCORE_PARTS_H_

#include <span>
#include <string>
#include <vector>

#include "cli/print.h"
#include "common/rules/score.h"
#include "common/rules/score_interval.h"
#include "common/rules/score_window.h"

namespace assay::cli {

// "counts", "dropped: fastest", ... of each run. The slowest and the fastest are what was neither
// counted nor dropped for failing.
std::vector<std::string> PartsOf(std::span<const rules::RunScore> runs,
                                 const rules::WindowScore& window);

const std::vector<Column>& RunScoreColumns();

// {"low_minutes": ..., "high_minutes": ..., "confidence": ..., "resamples": ...}.
Json IntervalJson(const rules::ScoreInterval& interval);

// Which runs counted of more than were demanded.
Json WindowJson(const rules::WindowScore& window);

// "95 % of resampled sets: 7.21 to 7.66 min".
std::string IntervalText(const rules::ScoreInterval& interval);

}  // namespace assay::cli

#endif  // CLI_SCORE_PARTS_H_
