// Memory and paging of the whole node (/proc/meminfo, /proc/vmstat).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

#include "worker/agent/telemetry/kernel_file.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

struct Field {
  const char* kernel_name;
  telemetry::Column column;
};

const std::vector<Field>& MemoryFields() {  // in KiB
  static const auto* const kFields = new std::vector<Field>{
      {"MemFree:", {"memory.free", "bytes"}},  {"MemAvailable:", {"memory.available", "bytes"}},
      {"Cached:", {"memory.cached", "bytes"}}, {"Shmem:", {"memory.shared", "bytes"}},
      {"Dirty:", {"memory.dirty", "bytes"}},   {"SwapFree:", {"memory.swap_free", "bytes"}}};
  return *kFields;
}

const std::vector<Field>& PagingFields() {
  static const auto* const kFields =
      new std::vector<Field>{{"pswpin", {"paging.swapped_in", "pages", true}},
                             {"pswpout", {"paging.swapped_out", "pages", true}},
                             {"pgmajfault", {"paging.major_faults", "events", true}}};
  return *kFields;
}

class MemorySource final : public TelemetrySource {
 public:
  explicit MemorySource(const SourceOptions& options)
      : meminfo_(options.proc + "/meminfo"), vmstat_(options.proc + "/vmstat") {
    if (!meminfo_.is_open()) return;
    for (const Field& field : MemoryFields())
      columns_.push_back(field.column);
    for (const Field& field : PagingFields())
      columns_.push_back(field.column);
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    Take(meminfo_.Read(), MemoryFields(), 1024, values);
    Take(vmstat_.Read(), PagingFields(), 1, values.subspan(MemoryFields().size()));
  }

 private:
  static void Take(absl::string_view text, const std::vector<Field>& fields, int64_t scale,
                   std::span<int64_t> values) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::vector<absl::string_view> words = WordsOf(line);
      for (size_t i = 0; i < fields.size() && words.size() >= 2; ++i) {
        if (words[0] != fields[i].kernel_name) continue;
        const int64_t number = NumberOf(words[1]);
        if (number != telemetry::kMissing) values[i] = number * scale;
      }
    }
  }

  KernelFile meminfo_;
  KernelFile vmstat_;
  std::vector<telemetry::Column> columns_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeMemorySource(const SourceOptions& options) {
  return std::make_unique<MemorySource>(options);
}

}  // namespace assay::agent
