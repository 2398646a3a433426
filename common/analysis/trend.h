// Results over rounds: the best of each round beside that of the round before, where the two may be
// compared (compatibility.h). Pure functions.

#ifndef COMMON_ANALYSIS_TREND_H_
#define COMMON_ANALYSIS_TREND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::analysis {

// A result as a trend sees it.
struct RoundResult {
  std::string entry;         // e-42
  std::string organization;  // under the name by which people want it known (aliases)
  std::string system;        //
  std::string benchmark;
  std::string division;
  std::string round;    // hpc-1.0.0
  int round_order = 0;  // of the rounds, by age
  bool is_weak = false;
  double value = 0;   // minutes, fewer are better; of weak scaling models per minute; above 0
  int64_t units = 0;  // 0: unknown
};

enum class TrendBy { kBenchmark, kOrganization, kSystem };

struct TrendPoint {
  RoundResult best;      // of the round; of equal ones the first
  int result_count = 0;  // in the round
  // How many times as fast as the best of the round before; none for the first round, and where
  // why_not says why they may not be compared.
  std::optional<double> speedup;
  std::string why_not;
};

// Of one benchmark, division and metric, over rounds.
struct Trend {
  std::string benchmark, division;
  bool is_weak = false;
  std::string name;                // of the organisation or system; empty: of all
  std::vector<TrendPoint> points;  // oldest round first
};

// By benchmark, division, metric and name.
std::vector<Trend> TrendsOf(const std::vector<RoundResult>& results, TrendBy by);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_TREND_H_
