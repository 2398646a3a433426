#include "cli/entry/plan_estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/util/time_util.h"

#include "assay/v1/history_service.pb.h"

#include "cli/command/filter_terms.h"
#include "common/client/history.h"
#include "common/status.h"

namespace assay::cli {
namespace {

using client::Json;

constexpr int64_t kEarlierRunsMax = 50;
constexpr double kSecondsPerMinute = 60;
constexpr double kMinutesPerHour = 60;
constexpr double kJoulesPerKilowattHour = 3.6e6;

// "1 h 14 min", "3.2 min"
std::string InHours(double minutes) {
  if (minutes < kMinutesPerHour) return absl::StrFormat("%.1f min", minutes);
  const auto whole = static_cast<int64_t>(std::llround(minutes));
  return absl::StrFormat("%d h %d min", whole / 60, whole % 60);
}

struct Spread {
  double mean = 0;
  double deviation = 0;  // of one run; 0 for a single one
};

Spread SpreadOf(const std::vector<EarlierRun>& runs) {
  Spread spread;
  for (const EarlierRun& run : runs)
    spread.mean += run.minutes / static_cast<double>(runs.size());
  double squares = 0;
  for (const EarlierRun& run : runs)
    squares += (run.minutes - spread.mean) * (run.minutes - spread.mean);
  if (runs.size() > 1) spread.deviation = std::sqrt(squares / static_cast<double>(runs.size() - 1));
  return spread;
}

// Of those runs that have it; none if no run has.
std::optional<double> MeanOf(const std::vector<EarlierRun>& runs,
                             std::optional<double> EarlierRun::*member) {
  double sum = 0;
  int64_t count = 0;
  for (const EarlierRun& run : runs) {
    if (!(run.*member)) continue;
    sum += *(run.*member);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

}  // namespace

absl::StatusOr<std::vector<EarlierRun>> FindEarlierRuns(const client::Client& client,
                                                        const v1::SubmissionSpec& spec) {
  v1::QueryResultsRequest request;
  request.set_kind(v1::QueryResultsRequest::RUN);
  request.set_filter(
      absl::StrJoin({Equality("system", spec.system()), Equality("benchmark", spec.benchmark()),
                     Equality("dataset", spec.dataset()), absl::StrCat("nodes=", spec.node_count()),
                     std::string("state=succeeded converged=true imported=false")},
                    " "));
  for (const char* const column : {"entry", "started", "ended", "energy_joules", "staging_seconds"})
    request.add_columns(column);
  ASSIGN_OR_RETURN(const v1::QueryResultsResponse answer,
                   client::AskHistory(client, request, kEarlierRunsMax));
  std::vector<EarlierRun> runs;
  for (const v1::QueryRow& row : answer.rows()) {
    if (row.values_size() < 5 || !row.values(1).has_time() || !row.values(2).has_time()) continue;
    const auto duration = row.values(2).time() - row.values(1).time();
    EarlierRun run = {
        .entry = row.values(0).text(),
        .minutes = static_cast<double>(
                       google::protobuf::util::TimeUtil::DurationToMilliseconds(duration)) /
                   1e3 / kSecondsPerMinute};
    if (row.values(3).has_number()) run.energy_joules = row.values(3).number();
    if (row.values(4).has_number()) run.staging_seconds = row.values(4).number();
    runs.push_back(std::move(run));
  }
  return runs;
}

Json EstimateJson(const v1::SubmissionSpec& spec, const std::vector<EarlierRun>& earlier) {
  if (earlier.empty())
    return {{"summary", absl::StrCat("unknown: no run of ", spec.benchmark(), " on ", spec.system(),
                                     " with this dataset and ", spec.node_count(),
                                     spec.node_count() == 1 ? " node" : " nodes",
                                     " has reached its target here yet")}};
  const Spread spread = SpreadOf(earlier);
  const double run_count = std::max(spec.run_count(), 1);
  const bool is_side_by_side = spec.metric() == "throughput";
  const double wall = is_side_by_side ? spread.mean : run_count * spread.mean;
  const double node_hours = run_count * spread.mean * spec.node_count() / kMinutesPerHour;
  std::set<std::string> entries;
  for (const EarlierRun& run : earlier)
    entries.insert(run.entry);
  Json json = {{"run_minutes", spread.mean},     {"run_minutes_deviation", spread.deviation},
               {"wall_minutes", wall},           {"node_hours", node_hours},
               {"earlier_runs", earlier.size()}, {"earlier_entries", entries}};
  std::string summary = absl::StrFormat("%d %s of %.1f +-%.1f min%s", spec.run_count(),
                                        spec.run_count() == 1 ? "run" : "runs", spread.mean,
                                        spread.deviation, is_side_by_side ? " side by side" : "");
  const std::optional<double> staging = MeanOf(earlier, &EarlierRun::staging_seconds);
  if (staging && spec.staging() != "none") {
    json["staging_minutes"] = *staging / kSecondsPerMinute;
    absl::StrAppendFormat(&summary, ", %.3g of it staging", *staging / kSecondsPerMinute);
  }
  absl::StrAppendFormat(&summary, ": %s, %.3g node-hours", InHours(wall), node_hours);
  if (const std::optional<double> joules = MeanOf(earlier, &EarlierRun::energy_joules)) {
    json["energy_joules"] = *joules * run_count;
    absl::StrAppendFormat(&summary, ", %.3g kWh", *joules * run_count / kJoulesPerKilowattHour);
  }
  absl::StrAppendFormat(&summary, " (by %d earlier %s of %s)", earlier.size(),
                        earlier.size() == 1 ? "run" : "runs", absl::StrJoin(entries, ", "));
  json["summary"] = std::move(summary);
  return json;
}

}  // namespace assay::cli
