// What became of each run in a score, and the parts of a score as JSON and in words. Pure
// functions.

#ifndef COMMON_CLIENT_SCORE_PARTS_H_
#define COMMON_CLIENT_SCORE_PARTS_H_

#include <span>
#include <string>
#include <vector>

#include "common/client/json.h"
#include "common/rules/score.h"
#include "common/rules/score_interval.h"
#include "common/rules/score_window.h"

namespace assay::client {

// "counts", "dropped: fastest", ... of each run. The slowest and the fastest are what was neither
// counted nor dropped for failing.
std::vector<std::string> PartsOf(std::span<const rules::RunScore> runs,
                                 const rules::WindowScore& window);

// {"low_minutes": ..., "high_minutes": ..., "confidence": ..., "resamples": ...}.
Json IntervalJson(const rules::ScoreInterval& interval);

// Which runs counted of more than were demanded.
Json WindowJson(const rules::WindowScore& window);

// "7.21 to 7.66 min in 95 % of 1000 resampled sets".
std::string IntervalText(const rules::ScoreInterval& interval);

}  // namespace assay::client

#endif  // COMMON_CLIENT_SCORE_PARTS_H_
