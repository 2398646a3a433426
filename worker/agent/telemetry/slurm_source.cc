// What Slurm says of the node's power while a run is in one of its jobs: a check of other meters,
// never one itself. It says so only where its plug-in measures whole nodes.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "worker/agent/telemetry/asking_thread.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

constexpr int64_t kSlurmIntervalNs =
    60'000'000'000;  // its own figures are renewed each half a minute
constexpr std::chrono::milliseconds kEndPatience(2000);
constexpr double kSlurmWattsMax = 1e6;
constexpr double kSlurmJoulesMax = 9e12;

// AcctGatherEnergyType of those that measure nodes, not processors or GPUs.
constexpr absl::string_view kNodePlugins[] = {"ipmi", "xcc", "pm_counters"};

// The number of "NAME=123" among the words; nullopt where it says n/s, or 0, which is as much.
std::optional<double> SlurmNumber(absl::string_view text, absl::string_view name, double most) {
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"))) {
    double number = 0;
    if (!absl::ConsumePrefix(&word, name) || !absl::ConsumePrefix(&word, "=")) continue;
    if (absl::SimpleAtod(word, &number) && number > 0 && number <= most) return number;
  }
  return std::nullopt;
}

bool MeasuresNodes(absl::string_view config) {
  for (absl::string_view line : absl::StrSplit(config, '\n')) {
    if (!absl::ConsumePrefix(&line, "AcctGatherEnergyType")) continue;
    for (const absl::string_view plugin : kNodePlugins)
      if (absl::StrContains(line, absl::StrCat("/", plugin))) return true;
  }
  return false;
}

struct SlurmFigures {
  std::optional<int64_t> energy_uj;
  std::optional<int64_t> power_mw;
};

class SlurmSource final : public TelemetrySource {
 public:
  SlurmSource(const SlurmOptions& slurm, const std::function<int64_t()>& now_ns)
      : thread_([slurm, now_ns] { return ReaderOf(slurm, now_ns); }, kEndPatience) {}

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    const SlurmFigures figures = thread_.TakeAndAsk().value_or(SlurmFigures());
    if (figures.energy_uj.has_value()) values[0] = *figures.energy_uj;
    if (figures.power_mw.has_value()) values[1] = *figures.power_mw;
  }

 private:
  // Asks Slurm now and then; what it returns in between is empty.
  static std::function<SlurmFigures()> ReaderOf(const SlurmOptions& slurm,
                                                const std::function<int64_t()>& now_ns) {
    const bool measures_nodes = MeasuresNodes(slurm.show({"config"}));
    return [slurm, now_ns, measures_nodes, due_ns = int64_t{0}]() mutable {
      if (!measures_nodes || now_ns() < due_ns) return SlurmFigures();
      due_ns = now_ns() + kSlurmIntervalNs;
      const std::string node = slurm.show({"node", slurm.node});
      SlurmFigures figures;
      if (const auto joules = SlurmNumber(node, "ConsumedJoules", kSlurmJoulesMax))
        figures.energy_uj = std::llround(*joules * 1e6);
      if (const auto watts = SlurmNumber(node, "CurrentWatts", kSlurmWattsMax))
        figures.power_mw = std::llround(*watts * 1e3);
      return figures;
    };
  }

  const std::vector<telemetry::Column> columns_ = {{"check.energy.slurm", "uJ", true},
                                                   {"check.power.slurm", "mW", false}};
  AskingThread<SlurmFigures> thread_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeSlurmSource(const SourceOptions& options) {
  if (!options.meters.slurm.has_value()) return std::make_unique<NoSource>();
  return std::make_unique<SlurmSource>(*options.meters.slurm, options.now_ns);
}

}  // namespace assay::agent
