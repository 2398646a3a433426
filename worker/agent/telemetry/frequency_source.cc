// How fast the cores may go: their frequency on average, how often heat has held them down, and the
// hottest place (/sys/devices/system/cpu, /sys/class/thermal).

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "worker/agent/telemetry/kernel_file.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

// At most so many cores are asked: a node has hundreds, and its budget is a thousandth of one.
constexpr size_t kCoresAsked = 16;

class FrequencySource final : public TelemetrySource {
 public:
  explicit FrequencySource(const SourceOptions& options) {
    const std::string cores = options.sys + "/devices/system/cpu";
    for (const std::string& name : Names(cores, "cpu")) {
      if (name.size() < 4 || !absl::ascii_isdigit(static_cast<unsigned char>(name[3]))) continue;
      const std::string core = absl::StrCat(cores, "/", name);
      Add(core + "/cpufreq/scaling_cur_freq", kCoresAsked, &frequencies_);
      Add(core + "/thermal_throttle/core_throttle_count", kCoresAsked, &throttles_);
    }
    const std::string zones = options.sys + "/class/thermal";
    for (const std::string& name : Names(zones, "thermal_zone"))
      Add(absl::StrCat(zones, "/", name, "/temp"), kCoresAsked, &temperatures_);
    if (!frequencies_.empty()) columns_.push_back({"cpu.frequency", "kHz", false});
    if (!throttles_.empty()) columns_.push_back({"cpu.throttled", "events", true});
    if (!temperatures_.empty()) columns_.push_back({"temperature.highest", "mC", false});
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    size_t at = 0;
    if (!frequencies_.empty()) {
      const std::vector<int64_t> read = Read(&frequencies_);
      if (!read.empty()) values[at] = Sum(read) / static_cast<int64_t>(read.size());
      ++at;
    }
    if (!throttles_.empty()) {
      const std::vector<int64_t> read = Read(&throttles_);
      if (read.size() == throttles_.size()) values[at] = Sum(read);
      ++at;
    }
    if (temperatures_.empty()) return;
    const std::vector<int64_t> read = Read(&temperatures_);
    if (!read.empty()) values[at] = *std::max_element(read.begin(), read.end());
  }

 private:
  static std::vector<std::string> Names(const std::string& directory, absl::string_view prefix) {
    std::vector<std::string> names = ListDirectory(directory).value_or(std::vector<std::string>());
    std::erase_if(names, [&](const std::string& name) { return !absl::StartsWith(name, prefix); });
    return names;
  }
  static void Add(const std::string& path, size_t count_max, std::vector<KernelFile>* files) {
    if (files->size() >= count_max) return;
    KernelFile file(path);
    if (file.ReadNumber().has_value()) files->push_back(std::move(file));
  }
  static std::vector<int64_t> Read(std::vector<KernelFile>* files) {
    std::vector<int64_t> numbers;
    for (KernelFile& file : *files)
      if (const std::optional<int64_t> number = file.ReadNumber(); number.has_value())
        numbers.push_back(*number);
    return numbers;
  }
  static int64_t Sum(const std::vector<int64_t>& numbers) {
    int64_t sum = 0;
    for (const int64_t number : numbers)
      sum += number;
    return sum;
  }

  std::vector<KernelFile> frequencies_;
  std::vector<KernelFile> throttles_;
  std::vector<KernelFile> temperatures_;
  std::vector<telemetry::Column> columns_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeFrequencySource(const SourceOptions& options) {
  return std::make_unique<FrequencySource>(options);
}

}  // namespace assay::agent
