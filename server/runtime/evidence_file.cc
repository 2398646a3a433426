#include "server/runtime/evidence_file.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/node_clock.h"
#include "common/telemetry/align.h"

namespace assay::runtime {
namespace {

constexpr int64_t kCachesBytesMax = 4 << 20;
constexpr int64_t kTelemetryBytesMax = 64 << 20;     // of a node: a hundred hours and more
constexpr size_t kValueCountMax = size_t{16} << 20;  // 128 MiB at a time

}  // namespace

std::optional<std::string> EvidenceOf(absl::string_view name, int64_t bytes_max,
                                      const core::Run& run, const store::ArtifactStore& artifacts) {
  const auto found =
      std::find_if(run.artifacts.begin(), run.artifacts.end(),
                   [name](const core::ArtifactRef& file) { return file.file_name == name; });
  if (found == run.artifacts.end() || found->size_bytes > bytes_max) return std::nullopt;
  std::string text;
  const absl::Status read = artifacts.ReadVerified(
      found->sha256, [&text](absl::string_view piece) { absl::StrAppend(&text, piece); });
  if (read.ok()) return text;
  LOG(ERROR) << "run=" << run.id << " is judged without its " << name << ": " << read;
  return std::nullopt;
}

std::string CachesOf(int node, const core::Run& run, const store::ArtifactStore& artifacts) {
  return EvidenceOf(absl::StrCat("caches_", node, ".json"), kCachesBytesMax, run, artifacts)
      .value_or("");
}

rules::RunClocks ClocksOf(std::optional<int64_t> run_start_ms, const core::Run& run,
                          const store::ArtifactStore& artifacts) {
  return {run_start_ms, [&run, &artifacts](const std::string& name) {
            return EvidenceOf(name, kClockSamplesBytesMax, run, artifacts);
          }};
}

std::optional<telemetry::Series> TelemetryOf(size_t node, std::vector<std::string> prefixes,
                                             const rules::RunClocks& clocks, const core::Run& run,
                                             const store::ArtifactStore& artifacts) {
  const std::string name = absl::StrCat("telemetry_", node, ".bin");
  const std::optional<std::string> bytes = EvidenceOf(name, kTelemetryBytesMax, run, artifacts);
  if (!bytes.has_value()) return std::nullopt;
  absl::StatusOr<telemetry::Series> series = telemetry::ReadSeries(
      *bytes, {.prefixes = std::move(prefixes), .value_count_max = kValueCountMax});
  if (series.ok()) {
    const std::optional<NodeClock> clock = clocks.Of(static_cast<int>(node));
    if (clock.has_value()) telemetry::Align(*clock, &*series);
    return *std::move(series);
  }
  LOG(ERROR) << "run=" << run.id << " is judged without its " << name << ": " << series.status();
  return std::nullopt;
}

}  // namespace assay::runtime
