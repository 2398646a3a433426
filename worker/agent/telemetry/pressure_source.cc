// For how long somebody, or everybody, has waited for processors, memory or I/O (/proc/pressure).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "worker/agent/telemetry/kernel_file.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

class PressureSource final : public TelemetrySource {
 public:
  explicit PressureSource(const SourceOptions& options) {
    for (const char* resource : {"cpu", "memory", "io"}) {
      KernelFile file(absl::StrCat(options.proc, "/pressure/", resource));
      // A kernel that was started with psi=0 has the file and does not let it be read.
      if (file.Read().empty()) continue;
      files_.push_back(std::move(file));
      for (const char* who : {"some", "full"})
        columns_.push_back({absl::StrCat("pressure.", resource, ".", who), "us", true});
    }
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  // "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345"
  void Sample(std::span<int64_t> values) override {
    for (size_t i = 0; i < files_.size(); ++i) {
      for (const absl::string_view line : absl::StrSplit(files_[i].Read(), '\n')) {
        const std::vector<absl::string_view> words = WordsOf(line);
        if (words.empty() || !absl::StartsWith(words.back(), "total=")) continue;
        values[2 * i + (words[0] == "full" ? 1 : 0)] =
            NumberOf(absl::StripPrefix(words.back(), "total="));
      }
    }
  }

 private:
  std::vector<KernelFile> files_;
  std::vector<telemetry::Column> columns_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakePressureSource(const SourceOptions& options) {
  return std::make_unique<PressureSource>(options);
}

}  // namespace assay::agent
