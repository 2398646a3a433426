// Trends and aliases of set_history.h.

#include <algorithm>
#include <string>
#include <utility>

#include "google/protobuf/util/time_util.h"

#include "common/analysis/compatibility.h"
#include "common/client/ids.h"
#include "common/client/set_history.h"
#include "common/rules/registry.h"

namespace assay::client {
namespace {

// By age; a facility's rounds come after all others.
int RoundOrder(const std::string& round) {
  const auto rounds = rules::BuiltInRuleSets();
  const auto found = std::find_if(rounds.begin(), rounds.end(),
                                  [&](const auto* rules) { return rules->name() == round; });
  return static_cast<int>(found - rounds.begin());
}

}  // namespace

std::vector<analysis::RoundResult> RoundResultsOf(std::span<const v1::Submission> entries,
                                                  const analysis::Aliases& aliases) {
  std::vector<analysis::RoundResult> results;
  for (const v1::Submission& entry : entries) {
    const bool is_weak = entry.has_throughput();
    if (!is_weak && !entry.has_score_minutes()) continue;
    const v1::SubmissionSpec& spec = entry.spec();
    results.push_back(
        {.entry = ShortId(entry.name()),
         .organization = aliases.OrganizationOf(spec.organization()),
         .system = aliases.SystemOf(spec.organization(), spec.system()),
         .benchmark = spec.benchmark(),
         .division = spec.division(),
         .round = spec.round(),
         .round_order = RoundOrder(spec.round()),
         .is_weak = is_weak,
         .value = is_weak ? entry.throughput().models_per_minute() : entry.score_minutes()});
  }
  return results;
}

Json TrendJson(const analysis::Trend& trend) {
  Json rows = Json::array();
  for (const analysis::TrendPoint& point : trend.points) {
    Json row = {{"benchmark", trend.benchmark},
                {"division", trend.division},
                {"metric", trend.is_weak ? "models_per_minute" : "minutes"}};
    if (!trend.name.empty()) row["of"] = trend.name;
    row["round"] = point.best.round;
    row[trend.is_weak ? "models_per_minute" : "minutes"] = point.best.value;
    row["entry"] = point.best.entry;
    row["organization"] = point.best.organization;
    row["system"] = point.best.system;
    row["result_count"] = point.result_count;
    if (point.speedup) row["speedup"] = *point.speedup;
    if (!point.why_not.empty()) {
      row["break"] = point.why_not;
      row["break_source"] = std::string(analysis::kCompatibilitySource);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json AliasJson(const analysis::NameAlias& alias) {
  return {{"kind", std::string(NameOf(alias.kind))},
          {"name", alias.name},
          {"known_as", alias.known_as},
          {"author", alias.author},
          {"time", google::protobuf::util::TimeUtil::ToString(
                       google::protobuf::util::TimeUtil::MillisecondsToTimestamp(alias.time_ms))},
          {"reason", alias.reason}};
}

}  // namespace assay::client
