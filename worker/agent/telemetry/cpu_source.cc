// Processor time of the whole node (/proc/stat) and how many processes want some (/proc/loadavg).

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "worker/agent/telemetry/kernel_file.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

// Of the first line, in its order.
constexpr const char* kTimes[] = {"user",   "nice", "system",  "idle",
                                  "iowait", "irq",  "softirq", "steal"};
constexpr size_t kTimeCount = std::size(kTimes);

class CpuSource final : public TelemetrySource {
 public:
  explicit CpuSource(const SourceOptions& options)
      : ticks_per_second_(options.ticks_per_second),
        stat_(options.proc + "/stat"),
        load_(options.proc + "/loadavg") {
    if (!stat_.is_open()) return;
    for (const char* name : kTimes)
      columns_.push_back({absl::StrCat("cpu.", name), "ms", true});
    columns_.push_back({"cpu.switches", "events", true});
    columns_.push_back({"cpu.runnable", "threads", false});
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    bool is_first = true;
    for (const absl::string_view line : absl::StrSplit(stat_.Read(), '\n')) {
      const std::vector<absl::string_view> words = WordsOf(line);
      if (is_first && words.size() > kTimeCount) {
        for (size_t i = 0; i < kTimeCount; ++i) {
          const int64_t ticks = NumberOf(words[i + 1]);
          if (ticks != telemetry::kMissing) values[i] = ticks * 1000 / ticks_per_second_;
        }
      }
      is_first = false;
      if (words.size() == 2 && words[0] == "ctxt") values[kTimeCount] = NumberOf(words[1]);
    }
    // "0.5 0.4 0.3 2/345 678": two of 345 threads run or wait for a processor.
    const std::vector<absl::string_view> words = WordsOf(load_.Read());
    if (words.size() >= 4)
      values[kTimeCount + 1] = NumberOf(words[3].substr(0, words[3].find('/')));
  }

 private:
  const int64_t ticks_per_second_;
  KernelFile stat_;
  KernelFile load_;
  std::vector<telemetry::Column> columns_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeCpuSource(const SourceOptions& options) {
  return std::make_unique<CpuSource>(options);
}

}  // namespace assay::agent
