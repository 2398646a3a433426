// Meters of energy and power that the node has, without what others count twice: RAPL
// (/sys/class/powercap), which is of sockets, memory or the whole platform, and Cray's counters
// (/sys/cray/pm_counters), which are of the whole node.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "worker/agent/telemetry/kernel_file.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

constexpr int64_t kMicrojoules = 1'000'000;

std::string LineOf(const std::string& path) {
  return std::string(absl::StripAsciiWhitespace(ReadFile(path).value_or("")));
}

// A counter that begins again at zero when it has reached its range.
class EnergySource final : public TelemetrySource {
 public:
  explicit EnergySource(const SourceOptions& options) {
    AddRapl(options.sys + "/class/powercap");
    AddCray(options.sys + "/cray/pm_counters");
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    for (size_t i = 0; i < meters_.size(); ++i) {
      Meter& meter = meters_[i];
      const std::optional<int64_t> now = Read(&meter);
      if (!now.has_value()) continue;
      // A driver that was loaded anew begins at zero, too, but far from the end of its range.
      if (meter.range > 0 && *now < meter.last && meter.last > meter.range / 2)
        meter.wrapped += meter.range;
      meter.last = *now;
      values[i] = (meter.wrapped + *now) * meter.scale;
    }
  }

 private:
  struct Meter {
    KernelFile file;
    int64_t scale = 1;
    int64_t range = 0;  // 0: it never begins again
    int64_t last = 0;
    int64_t wrapped = 0;
  };

  // "12345 J 1700000000 us" or a bare number.
  static std::optional<int64_t> Read(Meter* meter) {
    const std::vector<absl::string_view> words = WordsOf(meter->file.Read());
    int64_t number = 0;
    if (words.empty() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(words[0]), &number))
      return std::nullopt;
    return number;
  }

  void Add(telemetry::Column column, const std::string& path, int64_t scale, int64_t range) {
    Meter meter{.file = KernelFile(path), .scale = scale, .range = range};
    const std::optional<int64_t> now = Read(&meter);
    if (!now.has_value()) return;
    meter.last = *now;
    columns_.push_back(std::move(column));
    meters_.push_back(std::move(meter));
  }

  // Zones are intel-rapl:0 (a socket) and intel-rapl:0:1 (a part of it). Of the parts only memory
  // is not in its socket; and the same sockets again as intel-rapl-mmio are left out.
  void AddRapl(const std::string& root) {
    std::set<std::string> names;
    for (const std::string& zone : ListDirectory(root).value_or(std::vector<std::string>())) {
      if (!absl::StartsWith(zone, "intel-rapl:")) continue;
      const std::string directory = absl::StrCat(root, "/", zone, "/");
      std::string name = LineOf(directory + "name");
      const bool is_part = std::count(zone.begin(), zone.end(), ':') > 1;
      if (name.empty() || (is_part && name != "dram")) continue;
      if (is_part) name = absl::StrCat(name, "-", zone.substr(11, zone.find(':', 11) - 11));
      int64_t range = 0;
      if (!absl::SimpleAtoi(LineOf(directory + "max_energy_range_uj"), &range)) range = 0;
      if (names.insert(name).second)
        Add({absl::StrCat("energy.rapl.", name), "uJ", true}, directory + "energy_uj", 1, range);
    }
  }

  void AddCray(const std::string& root) {
    Add({"energy.node", "uJ", true}, root + "/energy", kMicrojoules, 0);
    Add({"power.node", "W", false}, root + "/power", 1, 0);
  }

  std::vector<Meter> meters_;
  std::vector<telemetry::Column> columns_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeEnergySource(const SourceOptions& options) {
  return std::make_unique<EnergySource>(options);
}

}  // namespace assay::agent
