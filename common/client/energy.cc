#include "common/client/energy.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay::client {
namespace {

constexpr char kNodeScope[] = "node";
constexpr char kComponentsScope[] = "components";

std::string JoulesText(double joules) {
  constexpr double kKilo = 1e3;
  constexpr double kMega = 1e6;
  if (joules >= kMega) return absl::StrFormat("%.3f MJ", joules / kMega);
  if (joules >= kKilo) return absl::StrFormat("%.3f kJ", joules / kKilo);
  return absl::StrFormat("%.1f J", joules);
}

}  // namespace

std::optional<Energy> EnergyOf(const v1::Run& run) {
  if (!run.has_energy_joules()) return std::nullopt;
  Energy energy{.joules = run.energy_joules(),
                .error_joules = run.energy_error_joules(),
                .is_node = run.energy_scope() == kNodeScope,
                .switch_count = run.switches_size()};
  for (const v1::SwitchPower& one : run.switches())
    energy.switch_watts += one.watts();
  return energy;
}

std::optional<Energy> MeanEnergy(std::span<const v1::Run> runs) {
  Energy mean;
  for (const v1::Run& run : runs) {
    const std::optional<Energy> energy = EnergyOf(run);
    const bool is_first = &run == &runs.front();
    if (!energy || (!is_first && energy->is_node != mean.is_node)) return std::nullopt;
    const bool has_equal_switches = is_first || (energy->switch_count == mean.switch_count &&
                                                 energy->switch_watts == mean.switch_watts);
    if (!has_equal_switches) return std::nullopt;  // no two of them are of the same things
    mean.is_node = energy->is_node;
    mean.switch_count = energy->switch_count;
    mean.switch_watts = energy->switch_watts;
    mean.joules += energy->joules / static_cast<double>(runs.size());
    mean.error_joules += energy->error_joules / static_cast<double>(runs.size());
  }
  if (runs.empty()) return std::nullopt;
  return mean;
}

std::string EnergyText(const Energy& energy) {
  std::string text =
      absl::StrCat(JoulesText(energy.joules), " +- ", JoulesText(energy.error_joules), ", ",
                   energy.is_node ? "whole nodes" : "processors and GPUs alone");
  if (energy.switch_count > 0)
    absl::StrAppendFormat(&text, " and %d %s rated %.0f W", energy.switch_count,
                          energy.switch_count == 1 ? "switch" : "switches", energy.switch_watts);
  return text;
}

std::string EnergyText(const v1::Run& run) {
  if (const std::optional<Energy> energy = EnergyOf(run)) return EnergyText(*energy);
  if (run.state() != v1::Run::SUCCEEDED) return "";
  const bool is_doubtful = std::any_of(
      run.findings().begin(), run.findings().end(),
      [](const v1::Finding& finding) { return absl::StartsWith(finding.rule(), "R-PWR-"); });
  if (is_doubtful) return "not known: see the findings R-PWR";
  const bool is_measured = std::any_of(
      run.artifacts().begin(), run.artifacts().end(),
      [](const v1::ArtifactRef& file) { return absl::StartsWith(file.file_name(), "telemetry_"); });
  return is_measured ? "no meter" : "not measured";
}

void AddEnergy(const Energy& energy, Json* json) {
  (*json)["energy_joules"] = energy.joules;
  (*json)["energy_error_joules"] = energy.error_joules;
  (*json)["energy_scope"] = energy.is_node ? kNodeScope : kComponentsScope;
}

}  // namespace assay::client
