// Counters of energy that the node has, without what others count twice: RAPL
// (/sys/class/powercap), which is of sockets, memory or the whole platform, and Cray's
// (/sys/cray/pm_counters), which are of the whole node.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
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

// Of one socket: what seems to be more is a driver that was loaded anew, not the end of its range.
constexpr double kZoneWattsMax = 5000;

// "12345 J 1700000000 us" or a bare number.
std::optional<int64_t> NumberIn(KernelFile* file) {
  const std::vector<absl::string_view> words = WordsOf(file->Read());
  int64_t number = 0;
  if (words.empty() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(words[0]), &number))
    return std::nullopt;
  return number;
}

double SecondsBetween(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-9;
}

// Zones of RAPL, counters that begin again at zero when they have reached their range.
class RaplSource final : public TelemetrySource {
 public:
  explicit RaplSource(const SourceOptions& options) : now_ns_(options.now_ns) {
    AddZones(options.sys + "/class/powercap");
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }
  bool is_meter() const override { return true; }

  void Sample(std::span<int64_t> values) override {
    for (size_t i = 0; i < zones_.size(); ++i) {
      Zone& zone = zones_[i];
      const std::optional<int64_t> now = NumberIn(&zone.file);
      if (!now.has_value()) continue;
      const int64_t at_ns = now_ns_();
      // Where it has not wrapped the column falls, and its readers see that it was set back.
      if (*now < zone.last && HasWrapped(zone, *now, at_ns)) zone.wrapped += zone.range;
      zone.last = *now;
      zone.at_ns = at_ns;
      values[i] = zone.wrapped + *now;
    }
  }

 private:
  struct Zone {
    KernelFile file;
    int64_t range = 0;  // 0: not known
    int64_t last = 0;
    int64_t at_ns = 0;  // when that was read
    int64_t wrapped = 0;
  };

  static bool HasWrapped(const Zone& zone, int64_t now, int64_t at_ns) {
    constexpr double kShortestS = 0.5;  // counters move in steps
    const double joules = static_cast<double>(zone.range - zone.last + now) * 1e-6;
    return zone.range > 0 &&
           joules / std::max(kShortestS, SecondsBetween(zone.at_ns, at_ns)) <= kZoneWattsMax;
  }

  void Add(const std::string& name, const std::string& path, int64_t range) {
    Zone zone{.file = KernelFile(path), .range = range};
    const std::optional<int64_t> now = NumberIn(&zone.file);
    if (!now.has_value()) return;
    zone.last = *now;
    zone.at_ns = now_ns_();
    columns_.push_back({absl::StrCat("energy.rapl.", name), "uJ", true});
    zones_.push_back(std::move(zone));
  }

  // Zones are intel-rapl:0 (a socket) and intel-rapl:0:1 (a part of it). Of the parts only memory
  // is not in its socket; and the same sockets again as intel-rapl-mmio are left out.
  void AddZones(const std::string& root) {
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
      if (names.insert(name).second) Add(name, directory + "energy_uj", range);
    }
  }

  const std::function<int64_t()> now_ns_;
  std::vector<Zone> zones_;
  std::vector<telemetry::Column> columns_;
};

// The node controller counts ten times a second. Where it stands still there are no values; where
// it was started anew the column begins at zero, as one that was set back.
class CraySource final : public TelemetrySource {
 public:
  explicit CraySource(const SourceOptions& options)
      : now_ns_(options.now_ns),
        energy_(options.sys + "/cray/pm_counters/energy"),
        power_(options.sys + "/cray/pm_counters/power"),
        freshness_(options.sys + "/cray/pm_counters/freshness"),
        startup_(options.sys + "/cray/pm_counters/startup") {
    if (!NumberIn(&energy_).has_value()) return;
    columns_ = {{"energy.node.cray", "uJ", true}, {"power.node.cray", "W", false}};
    started_ = NumberIn(&startup_);
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }
  bool is_meter() const override { return true; }

  void Sample(std::span<int64_t> values) override {
    if (columns_.empty() || HasStopped()) return;
    const std::optional<int64_t> joules = NumberIn(&energy_);
    const std::optional<int64_t> started = NumberIn(&startup_);
    if (!joules.has_value()) return;
    if (started.has_value() && started != started_) base_ = *joules;
    if (started.has_value()) started_ = started;
    values[0] = (*joules - base_) * kMicrojoules;
    if (const std::optional<int64_t> watts = NumberIn(&power_)) values[1] = *watts;
  }

 private:
  // Since the last sample that was not just now.
  bool HasStopped() {
    constexpr double kLongEnoughS = 0.5;
    const std::optional<int64_t> count = NumberIn(&freshness_);
    const int64_t now_ns = now_ns_();
    if (!count.has_value()) return false;
    if (count == count_) return SecondsBetween(counted_at_ns_, now_ns) > kLongEnoughS;
    count_ = count;
    counted_at_ns_ = now_ns;
    return false;
  }

  const std::function<int64_t()> now_ns_;
  KernelFile energy_;
  KernelFile power_;
  KernelFile freshness_;
  KernelFile startup_;
  std::vector<telemetry::Column> columns_;
  std::optional<int64_t> started_;  // which start of the controller it is
  int64_t base_ = 0;
  std::optional<int64_t> count_;  // of the controller's readings
  int64_t counted_at_ns_ = 0;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeRaplSource(const SourceOptions& options) {
  return std::make_unique<RaplSource>(options);
}

std::unique_ptr<TelemetrySource> MakeCraySource(const SourceOptions& options) {
  return std::make_unique<CraySource>(options);
}

}  // namespace assay::agent
