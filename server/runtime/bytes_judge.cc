#include "server/runtime/bytes_judge.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/rules/check.h"
#include "common/telemetry/first_pass.h"
#include "common/telemetry/series.h"
#include "server/runtime/evidence_file.h"

namespace assay::runtime {
namespace {

telemetry::NodePass PassOf(int node, const core::Run& run, const telemetry::RunPhases& phases,
                           const rules::RunClocks& clocks, const store::ArtifactStore& artifacts) {
  const std::optional<telemetry::Series> series =
      TelemetryOf(static_cast<size_t>(node),
                  {"disk.", "server.", "run.", "network.", "infiniband."}, clocks, run, artifacts);
  return telemetry::NodePassOf(node, phases, series.has_value() ? &*series : nullptr,
                               CachesOf(node, run, artifacts));
}

}  // namespace

void JudgeBytes(const core::Run& run, const telemetry::RunPhases& phases, int node_count,
                const std::optional<core::Dataset>& dataset, bool is_demanded,
                const rules::RunClocks& clocks, const store::ArtifactStore& artifacts,
                core::RunFacts* facts) {
  std::vector<telemetry::NodePass> nodes;
  for (int node = 0; node < node_count; ++node) {
    nodes.push_back(PassOf(node, run, phases, clocks, artifacts));
    if (!nodes.back().unknown.empty()) break;  // then the whole is
  }
  const std::optional<int64_t> train_samples =
      dataset.has_value() ? std::optional(dataset->train_sample_count) : std::nullopt;
  const telemetry::FirstPass pass =
      telemetry::FirstPassOf(phases, nodes, node_count, train_samples);
  if (!pass.unknown.empty()) {
    LOG(INFO) << "run=" << run.id << " first pass not known: " << pass.unknown;
    return;
  }
  if (!pass.IsShort()) return;
  const bool is_violation = is_demanded && pass.IsUnexplained();
  if (is_violation) facts->is_compliant = false;
  facts->findings.push_back(rules::ShortFirstPass(pass.Sentence(), is_violation));
}

void JudgeCache(const telemetry::RunPhases& phases, bool is_staging_timed, core::RunFacts* facts) {
  if (!is_staging_timed || phases.declared_cache_bytes == 0) return;
  facts->is_compliant = false;
  facts->findings.push_back(rules::DeclaredCache(phases.declared_cache_bytes));
}

}  // namespace assay::runtime
