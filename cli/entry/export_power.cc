#include "cli/entry/export_power.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "cli/run/run_telemetry.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/file.h"
#include "common/status.h"
#include "common/telemetry/energy.h"

namespace assay::cli {
namespace {

// The finding by which the run can have no power; empty: it can.
std::string Obstacle(const v1::Run& run) {
  for (const v1::Finding& finding : run.findings())
    for (const char* rule : {"R-PWR-010", "R-PWR-011", "R-PWR-012"})
      if (finding.rule() == rule)
        return absl::StrCat(client::ShortId(run.name()), " has ", rule, ": expected ",
                            finding.expected(), ", found ", finding.found());
  return run.energy_scope() == "node"
             ? ""
             : absl::StrCat(client::ShortId(run.name()), " was not measured on every node");
}

std::string HostOf(const v1::Run& run, int node) {
  if (node < run.node_names_size()) return run.node_names(node);
  return node < run.workers_size() ? client::ShortId(run.workers(node)) : absl::StrCat(node);
}

// The files of a kind are as many for each run, or the official checker takes none.
std::string OtherSwitches(const std::vector<v1::Run>& runs) {
  for (const v1::Run& run : runs)
    if (run.switches_size() != runs[0].switches_size())
      return absl::StrCat(client::ShortId(run.name()), " counts another number of switches (",
                          run.switches_size(), ") than ", client::ShortId(runs[0].name()), " (",
                          runs[0].switches_size(), "): the coordinator's list was changed");
  return "";
}

absl::Status AddRun(const client::Client& client, const v1::Run& run, PowerLogs* power) {
  const std::string& result = client::ResultFile(run)->file_name();
  const std::string folder = client::PathPart(result.substr(0, result.find('.')));
  ASSIGN_OR_RETURN(const std::vector<NodeTelemetry> nodes, TelemetryOf(client, run));
  for (const auto& [node, series, clock, foreign] : nodes) {
    const std::vector<telemetry::MeterPower> meters = telemetry::MeterPowers(
        series, telemetry::SpanOf(series.header, run.run_start_ms(), run.run_stop_ms()));
    if (meters.empty() || !meters[0].is_node)
      return absl::DataLossError(absl::StrCat("telemetry_", node, ".bin of ",
                                              client::ShortId(run.name()),
                                              " has no meter of the node any more"));
    power->files.emplace_back(JoinPath(folder, absl::StrCat("node_", node, ".txt")),
                              telemetry::PowerLog(meters[0], HostOf(run, node)));
  }
  for (int k = 0; k < run.switches_size(); ++k) {
    const v1::SwitchPower& one = run.switches(k);
    power->files.emplace_back(JoinPath(folder, absl::StrCat("sw_", k, ".txt")),
                              telemetry::SwitchLog(one.name(), one.watts(), run.run_start_ms()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PowerLogs> ReadPowerLogs(const client::Client& client,
                                        const std::vector<v1::Run>& runs) {
  PowerLogs power;
  std::string obstacle;
  for (const v1::Run& run : runs)
    if (obstacle.empty()) obstacle = Obstacle(run);
  if (obstacle.empty()) obstacle = OtherSwitches(runs);
  const bool is_measured = std::any_of(
      runs.begin(), runs.end(), [](const v1::Run& run) { return run.energy_scope() == "node"; });
  if (!obstacle.empty()) {
    if (is_measured) power.why_not = obstacle;
    return power;
  }
  for (const v1::Run& run : runs)
    RETURN_IF_ERROR(AddRun(client, run, &power));
  return power;
}

}  // namespace assay::cli
