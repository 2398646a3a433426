#include "server/runtime/energy_judge.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "common/rules/log_rules.h"
#include "common/telemetry/energy.h"
#include "common/telemetry/series.h"
#include "server/runtime/evidence_file.h"

namespace assay::runtime {
namespace {

using telemetry::MeterPower;

constexpr int64_t kUncertaintyUsMax = 3'600'000'000;
constexpr double kMetersApartMax = 0.05;
constexpr double kCheckedRunMinS = 600;  // others look at a node's power now and then
constexpr char kNodeScope[] = "node";

// How far the wall clock of the node may be off that of node 0, which stamps the log, by what both
// were off the coordinator's when the run began.
int64_t UncertaintyNs(const core::Run& run, size_t node) {
  const core::RunNode& first = run.nodes[0];
  const core::RunNode& one = run.nodes[node];
  if (node == 0 || first.clock_offset_uncertainty_us == 0 || one.clock_offset_uncertainty_us == 0)
    return 0;
  const double apart_us = std::fabs(static_cast<double>(one.clock_offset_us) -
                                    static_cast<double>(first.clock_offset_us)) +
                          static_cast<double>(first.clock_offset_uncertainty_us) +
                          static_cast<double>(one.clock_offset_uncertainty_us);
  return static_cast<int64_t>(std::clamp<double>(apart_us, 0, kUncertaintyUsMax)) * 1000;
}

// What one node's meters say, and which of them.
struct NodeEnergy {
  std::vector<MeterPower> meters;   // whole nodes first
  std::vector<std::string> silent;  // meters that said nothing, with the reason

  const MeterPower* OfNode() const {
    return meters.empty() || !meters[0].is_node ? nullptr : &meters[0];
  }
};

class EnergyJudge {
 public:
  explicit EnergyJudge(core::RunFacts* facts)
      : facts_(*facts),
        run_s_(
            (static_cast<double>(*facts->run_stop_ms) - static_cast<double>(*facts->run_start_ms)) /
            1000) {}

  void Add(NodeEnergy node) { nodes_.push_back(std::move(node)); }

  void Finish() {
    const bool has_node_meter =
        std::any_of(nodes_.begin(), nodes_.end(),
                    [](const NodeEnergy& node) { return node.OfNode() != nullptr; });
    bool all_have_one = true;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Compare(i);
      all_have_one = all_have_one && nodes_[i].OfNode() != nullptr;
      if (nodes_[i].OfNode() != nullptr) {
        CheckReadings(i, *nodes_[i].OfNode());
      } else if (has_node_meter || !nodes_[i].silent.empty()) {
        Warn("R-PWR-012",
             absl::StrCat("node ", i, " has none", nodes_[i].silent.empty() ? "" : ": ",
                          absl::StrJoin(nodes_[i].silent, "; ")));
      }
    }
    all_have_one ? SumNodes() : SumComponents();
  }

 private:
  void Warn(absl::string_view rule, std::string found) {
    core::Finding finding = rules::LogFinding(rule, "power:meter", 0, std::move(found));
    finding.severity = core::Severity::kWarning;
    facts_.findings.push_back(std::move(finding));
  }

  void CheckReadings(size_t node, const MeterPower& power) {
    if (!power.problem.empty()) {
      Warn("R-PWR-010", absl::StrCat("node ", node, ": ", power.meter, ": ", power.problem));
    } else if (power.longest_gap_s > telemetry::kPowerGapMaxS) {
      Warn("R-PWR-010", absl::StrFormat("node %d: %s has no reading for %.1f s at %.0f s%s%s", node,
                                        power.meter, power.longest_gap_s, power.gap_at_s,
                                        power.gap_why.empty() ? "" : ": ", power.gap_why));
    }
    if (power.readings.size() < telemetry::kPowerReadingsMin)
      Warn("R-PWR-011", absl::StrFormat("node %d: %d readings", node, power.readings.size()));
  }

  void Compare(size_t node) {
    const std::vector<MeterPower>& meters = nodes_[node].meters;
    for (size_t i = 1; i < meters.size() && meters[0].is_node; ++i) {
      const bool is_check = meters[i].is_check && run_s_ >= kCheckedRunMinS;
      if (!meters[i].is_node && !is_check) continue;
      const double one = meters[0].EnergyJ(run_s_);
      const double other = meters[i].EnergyJ(run_s_);
      if (std::fabs(one - other) <= kMetersApartMax * std::max(one, other)) continue;
      Warn("R-PWR-013", absl::StrFormat("node %d: %.0f J by %s and %.0f J by %s", node, one,
                                        meters[0].meter, other, meters[i].meter));
    }
  }

  void SumNodes() {
    std::vector<const MeterPower*> powers;
    for (const NodeEnergy& node : nodes_)
      powers.push_back(node.OfNode());
    Sum(powers, kNodeScope);
  }

  void SumComponents() {
    std::vector<const MeterPower*> powers;
    for (const NodeEnergy& node : nodes_) {
      const size_t before = powers.size();
      for (const MeterPower& power : node.meters)
        if (!power.is_node && !power.is_check) powers.push_back(&power);
      if (powers.size() == before) return;  // of this node nothing is known
    }
    Sum(powers, "components");
  }

  void Sum(const std::vector<const MeterPower*>& powers, const char* scope) {
    double joules = 0;
    double error = 0;
    for (const MeterPower* power : powers) {
      if (!power->problem.empty()) return;
      const double one = power->EnergyJ(run_s_);
      joules += one;
      error += std::max({0.0, power->high_j - one, one - power->low_j});
    }
    if (powers.empty() || !std::isfinite(joules) || !std::isfinite(error)) return;
    facts_.energy_joules = joules;
    facts_.energy_error_joules = error;
    facts_.energy_scope = scope;
  }

  core::RunFacts& facts_;
  const double run_s_;
  std::vector<NodeEnergy> nodes_;
};

}  // namespace

void JudgeEnergy(const core::Run& run, const rules::RunClocks& clocks,
                 const store::ArtifactStore& artifacts, core::RunFacts* facts) {
  if (!facts->run_start_ms || !facts->run_stop_ms || *facts->run_start_ms < 0 ||
      *facts->run_stop_ms <= *facts->run_start_ms || run.nodes.empty())
    return;
  EnergyJudge judge(facts);
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    NodeEnergy node;
    if (const std::optional<telemetry::Series> series =
            TelemetryOf(i, {"energy.", "power.", "meter.", "check."}, clocks, run, artifacts)) {
      telemetry::RunSpan span =
          telemetry::SpanOf(series->header, *facts->run_start_ms, *facts->run_stop_ms);
      span.uncertainty_ns = std::min(series->clock_error_ns.value_or(UncertaintyNs(run, i)),
                                     kUncertaintyUsMax * 1000);
      node.meters = telemetry::MeterPowers(*series, span);
      node.silent = telemetry::SilentMeters(*series);
    }
    judge.Add(std::move(node));
  }
  judge.Finish();
}

void ChargeSwitches(const std::vector<core::SwitchPower>& switches, core::RunFacts* facts) {
  if (!facts->energy_joules || facts->energy_scope != kNodeScope) return;
  const double run_s =
      (static_cast<double>(*facts->run_stop_ms) - static_cast<double>(*facts->run_start_ms)) / 1000;
  for (const core::SwitchPower& one : switches)
    *facts->energy_joules += one.watts * run_s;
  facts->switches = switches;
}

}  // namespace assay::runtime
