// Numbers that the kernel gives a file each.

#ifndef WORKER_AGENT_TELEMETRY_NUMBER_SOURCE_H_
#define WORKER_AGENT_TELEMETRY_NUMBER_SOURCE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "worker/agent/telemetry/kernel_file.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {

class NumberSource : public TelemetrySource {
 public:
  // Adds a column, unless the file cannot be read. What it holds is multiplied with `scale`.
  void Add(const telemetry::Column& column, const std::string& path, int64_t scale = 1) {
    KernelFile file(path);
    if (!file.ReadNumber().has_value()) return;
    columns_.push_back(column);
    files_.emplace_back(std::move(file), scale);
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    for (size_t i = 0; i < files_.size(); ++i)
      if (const std::optional<int64_t> number = files_[i].first.ReadNumber(); number.has_value())
        values[i] = *number * files_[i].second;
  }

 private:
  std::vector<std::pair<KernelFile, int64_t>> files_;
  std::vector<telemetry::Column> columns_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_NUMBER_SOURCE_H_
