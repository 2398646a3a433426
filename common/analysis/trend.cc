#include "common/analysis/trend.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/analysis/compatibility.h"

namespace assay::analysis {
namespace {

std::string NameBy(const RoundResult& result, TrendBy by) {
  switch (by) {
    case TrendBy::kBenchmark:
      return "";
    case TrendBy::kOrganization:
      return result.organization;
    case TrendBy::kSystem:
      return result.system;
  }
  return "";
}

// How many times as fast `result` is as `other`, of one metric.
double Speedup(const RoundResult& result, const RoundResult& other) {
  return result.is_weak ? result.value / other.value : other.value / result.value;
}

void AddRound(const std::vector<const RoundResult*>& results, Trend* trend) {
  const RoundResult* best = results.front();
  for (const RoundResult* result : results)
    if (Speedup(*result, *best) > 1) best = result;
  TrendPoint point = {.best = *best, .result_count = static_cast<int>(results.size())};
  if (!trend->points.empty()) {
    const RoundResult& before = trend->points.back().best;
    point.why_not = WhyNotComparable(trend->benchmark, before.round, best->round);
    if (point.why_not.empty()) point.speedup = Speedup(*best, before);
  }
  trend->points.push_back(std::move(point));
}

}  // namespace

std::vector<Trend> TrendsOf(const std::vector<RoundResult>& results, TrendBy by) {
  using Key = std::tuple<std::string, std::string, bool, std::string>;
  using Round = std::pair<int, std::string>;
  std::map<Key, std::map<Round, std::vector<const RoundResult*>>> groups;
  for (const RoundResult& result : results) {
    if (!(result.value > 0)) continue;
    const Key key = {result.benchmark, result.division, result.is_weak, NameBy(result, by)};
    groups[key][{result.round_order, result.round}].push_back(&result);
  }
  std::vector<Trend> trends;
  for (const auto& [key, rounds] : groups) {
    Trend trend = {.benchmark = std::get<0>(key),
                   .division = std::get<1>(key),
                   .is_weak = std::get<2>(key),
                   .name = std::get<3>(key)};
    for (const auto& [round, members] : rounds)
      AddRound(members, &trend);
    trends.push_back(std::move(trend));
  }
  return trends;
}

}  // namespace assay::analysis
