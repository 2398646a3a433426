#include "common/client/run_telemetry.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/client/artifacts.h"
#include "common/client/ids.h"
#include "common/client/run_clocks.h"
#include "common/foreign_file.h"
#include "common/rules/run_clocks.h"
#include "common/status.h"
#include "common/telemetry/align.h"
#include "common/telemetry/bytes.h"

namespace assay::client {

double SecondsOfRun(const v1::Run& run, const telemetry::Header& header, int64_t at_ns) {
  const int64_t begin_ns =
      run.has_run_start_ms() ? telemetry::NodeNsAt(header, run.run_start_ms()) : header.node_ns;
  return (static_cast<double>(at_ns) - static_cast<double>(begin_ns)) / 1e9;
}

std::string ClocksText(const std::vector<NodeTelemetry>& nodes) {
  constexpr size_t kNamedMax = 5;
  size_t carried = 0;
  const NodeTelemetry* worst = nullptr;
  std::vector<int> others;
  for (const NodeTelemetry& node : nodes) {
    if (node.node == 0) continue;
    if (!node.series.clock_error_ns.has_value()) {
      others.push_back(node.node);
      continue;
    }
    ++carried;
    if (worst == nullptr || *node.series.clock_error_ns > *worst->series.clock_error_ns)
      worst = &node;
  }
  std::vector<std::string> parts;
  if (worst != nullptr)
    parts.push_back(
        absl::StrFormat("%d by offsets, off node 0 by at most %.3g ms (node %d)", carried,
                        static_cast<double>(*worst->series.clock_error_ns) * 1e-6, worst->node));
  if (!others.empty())
    parts.push_back(absl::StrCat(
        others.size(), " by the wall clock, off by nobody knows what: node ",
        absl::StrJoin(others.begin(),
                      others.begin() + static_cast<int64_t>(std::min(others.size(), kNamedMax)),
                      ", "),
        others.size() > kNamedMax ? ", ..." : ""));
  return absl::StrJoin(parts, "; ");
}

absl::StatusOr<std::vector<NodeTelemetry>> TelemetryOf(const Client& client, const v1::Run& run) {
  std::vector<NodeTelemetry> nodes;
  const rules::RunClocks clocks = ClocksOf(client, run);
  for (const v1::ArtifactRef& file : run.artifacts()) {
    absl::string_view name = file.file_name();
    NodeTelemetry node;
    if (!absl::ConsumePrefix(&name, "telemetry_") || !absl::ConsumeSuffix(&name, ".bin") ||
        !absl::SimpleAtoi(name, &node.node))
      continue;
    ASSIGN_OR_RETURN(const std::string bytes, DownloadArtifact(client, file));
    absl::StatusOr<telemetry::Series> series = telemetry::ReadSeries(bytes);
    if (!series.ok())
      return absl::DataLossError(absl::StrCat(file.file_name(), " of ", ShortId(run.name()), ": ",
                                              series.status().message()));
    node.series = *std::move(series);
    node.clock = clocks.Of(node.node);
    if (node.clock.has_value()) telemetry::Align(*node.clock, &node.series);
    nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const NodeTelemetry& a, const NodeTelemetry& b) { return a.node < b.node; });
  return nodes;
}

absl::StatusOr<std::vector<NodeTelemetry>> FindTelemetry(const Client& client, const v1::Run& run) {
  ASSIGN_OR_RETURN(std::vector<NodeTelemetry> nodes, TelemetryOf(client, run));
  if (!nodes.empty()) return nodes;
  return absl::NotFoundError(absl::StrCat(
      ShortId(run.name()), " has no telemetry: it has not ended, or an agent of before ran it"));
}

absl::Status AddForeign(const Client& client, const v1::Run& run,
                        std::vector<NodeTelemetry>* nodes) {
  for (const v1::ArtifactRef& file : run.artifacts())
    for (NodeTelemetry& node : *nodes) {
      if (file.file_name() != absl::StrCat(kForeignPrefix, node.node, ".jsonl")) continue;
      ASSIGN_OR_RETURN(const std::string text, DownloadArtifact(client, file));
      node.foreign = telemetry::ReadForeign(text);
      if (node.clock.has_value()) telemetry::Align(*node.clock, &node.foreign);
    }
  return absl::OkStatus();
}

}  // namespace assay::client
