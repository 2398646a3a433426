// Devices that the kernel tells of in one file, a line for each: those that are there when the
// source is made.

#ifndef WORKER_AGENT_TELEMETRY_LINE_SOURCE_H_
#define WORKER_AGENT_TELEMETRY_LINE_SOURCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "worker/agent/telemetry/kernel_file.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {

// A device's line: its name, and a number for each of the source's measures.
struct DeviceLine {
  std::string device;
  std::vector<int64_t> numbers;
};

class LineSource final : public TelemetrySource {
 public:
  // Names of columns are GROUP.DEVICE.MEASURE. `read` returns nullopt for a line that does not
  // count.
  LineSource(const std::string& path, const std::string& group,
             const std::vector<telemetry::Column>& measures,
             std::function<std::optional<DeviceLine>(absl::string_view)> read)
      : file_(path), measure_count_(measures.size()), read_(std::move(read)) {
    for (const absl::string_view line : absl::StrSplit(file_.Read(), '\n')) {
      const std::optional<DeviceLine> device = read_(line);
      if (!device.has_value() || !places_.emplace(device->device, columns_.size()).second) continue;
      for (const telemetry::Column& measure : measures)
        columns_.push_back({absl::StrCat(group, ".", device->device, ".", measure.name),
                            measure.unit, measure.is_counter});
    }
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    for (const absl::string_view line : absl::StrSplit(file_.Read(), '\n')) {
      const std::optional<DeviceLine> device = read_(line);
      if (!device.has_value()) continue;
      const auto place = places_.find(device->device);
      for (size_t i = 0; place != places_.end() && i < measure_count_; ++i)
        values[place->second + i] = device->numbers[i];
    }
  }

 private:
  KernelFile file_;
  const size_t measure_count_;
  const std::function<std::optional<DeviceLine>(absl::string_view)> read_;
  std::map<std::string, size_t> places_;  // of each device's first column
  std::vector<telemetry::Column> columns_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_LINE_SOURCE_H_
