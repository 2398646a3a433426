// How much a score would vary if the same runs were drawn again: a bootstrap percentile interval
// (Efron 1979). Deterministic: the same runs and seed give the same interval on every machine.

#ifndef COMMON_RULES_SCORE_INTERVAL_H_
#define COMMON_RULES_SCORE_INTERVAL_H_

#include <cstdint>
#include <optional>
#include <span>

#include "common/rules/score.h"

namespace assay::rules {

struct ScoreInterval {
  double low_minutes = 0;
  double high_minutes = 0;
  double confidence = 0;  // 0.95
  int resamples = 0;
};

struct IntervalOptions {
  double confidence = 0.95;  // in (0, 1)
  int resamples = 2000;      // at least 1
  uint64_t seed = 1;
};

// Resamples the runs that have a score in this round, with replacement, and takes the mean that
// `Score` takes of them, leaving out as many at either end as it left out. Runs that failed stay
// failed: the interval is about the times, not about convergence. None where there is no score, or
// fewer than three runs count.
std::optional<ScoreInterval> BootstrapInterval(const Scoring& scoring,
                                               std::span<const RunScore> runs,
                                               const IntervalOptions& options);

}  // namespace assay::rules

#endif  // COMMON_RULES_SCORE_INTERVAL_H_
