#include "worker/agent/node_figures.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/statusor.h"

#include "common/file.h"
#include "common/rules/check.h"
#include "worker/agent/telemetry/live_figures.h"

namespace assay::agent {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kAgeMaxNs = int64_t{120} * 1'000'000'000;
// Shares of a whole, and what the coordinator takes of anything else (server/api/limit_table.cc).
constexpr double kNumberMax = 1e15;

// Who owns the file may have written anything.
bool IsWithin(const std::optional<double>& value, double max) {
  return value.has_value() && *value <= max;
}

void SetMemory(const LiveFigures& live, int64_t memory_bytes, v1::NodeFigures* figures) {
  if (memory_bytes <= 0) return;
  figures->set_memory_total_bytes(memory_bytes);
  const auto total = static_cast<double>(memory_bytes);
  if (IsWithin(live.memory_available_bytes, total))
    figures->set_memory_used_bytes(memory_bytes -
                                   static_cast<int64_t>(*live.memory_available_bytes));
}

void SetProgress(const RunRecorder* recorder, v1::NodeFigures* figures) {
  if (recorder == nullptr) return;
  const std::optional<rules::Facts> facts = recorder->Facts();
  if (!facts.has_value()) return;
  if (facts->epochs > 0) figures->set_epoch(std::min<int64_t>(facts->epochs, INT32_MAX));
  if (facts->quality.has_value() && std::abs(*facts->quality) <= kNumberMax)
    figures->set_quality(*facts->quality);
}

}  // namespace

std::optional<v1::NodeFigures> ReadNodeFigures(const RunDirectory& directory,
                                               const RunRecorder* recorder, int64_t now_ns,
                                               int64_t memory_bytes) {
  const absl::StatusOr<std::string> text =
      ReadFile(directory.FiguresPath(), static_cast<int64_t>(kLiveFiguresBytes), Links::kRefuse);
  if (!text.ok()) return std::nullopt;
  const std::optional<LiveFigures> live = ParseLiveFigures(*text);
  if (!live.has_value() || live->at_ns < now_ns - kAgeMaxNs || live->at_ns > now_ns)
    return std::nullopt;
  v1::NodeFigures figures;
  figures.set_age_ms((now_ns - live->at_ns) / kNsPerMs);
  const auto set = [&figures](const std::optional<double>& value, double max, auto setter) {
    if (IsWithin(value, max)) (figures.*setter)(*value);
  };
  using F = v1::NodeFigures;
  constexpr double kWattsMax = 1e6;
  set(live->run_cpu_share, 1, &F::set_run_cpu_share);
  set(live->other_cpu_share, 1, &F::set_other_cpu_share);
  set(live->storage_read_bytes_per_s, kNumberMax, &F::set_storage_read_bytes_per_s);
  set(live->storage_written_bytes_per_s, kNumberMax, &F::set_storage_written_bytes_per_s);
  set(live->network_received_bytes_per_s, kNumberMax, &F::set_network_received_bytes_per_s);
  set(live->network_sent_bytes_per_s, kNumberMax, &F::set_network_sent_bytes_per_s);
  set(live->gpu_share, 1, &F::set_gpu_share);
  set(live->gpu_watts, kWattsMax, &F::set_gpu_watts);
  set(live->node_watts, kWattsMax, &F::set_node_watts);
  SetMemory(*live, memory_bytes, &figures);
  SetProgress(recorder, &figures);
  return figures;
}

}  // namespace assay::agent
