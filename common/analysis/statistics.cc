#include "common/analysis/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace assay::analysis {

std::optional<Moments> MomentsOf(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  Moments moments = {.count = static_cast<int>(values.size())};
  moments.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2) return moments;
  double squares = 0;
  for (const double value : values)
    squares += (value - moments.mean) * (value - moments.mean);
  moments.sd = std::sqrt(squares / (count - 1));
  return moments;
}

std::vector<int> MiddleRuns(std::span<const std::optional<double>> run_s) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<int> runs(run_s.size());
  std::iota(runs.begin(), runs.end(), 0);
  const auto time = [&](int run) { return run_s[static_cast<size_t>(run)].value_or(kNever); };
  std::stable_sort(runs.begin(), runs.end(), [&](int a, int b) { return time(a) < time(b); });
  if (runs.size() >= 3) {
    runs.pop_back();
    runs.erase(runs.begin());
  }
  runs.erase(std::remove_if(runs.begin(), runs.end(), [&](int run) { return time(run) == kNever; }),
             runs.end());
  return runs;
}

}  // namespace assay::analysis
