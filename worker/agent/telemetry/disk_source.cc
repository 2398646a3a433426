// What was read from and written to each disk of the node (/proc/diskstats).

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "worker/agent/telemetry/line_source.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

constexpr int64_t kSectorBytes = 512;  // whatever the disk's are

// "254 0 vda 21402 3 1543304 9002 ...": name, reads, merged, sectors read, ms, writes, merged,
// sectors written. Whole disks only, which /sys/block lists; not what lies on others.
std::optional<DeviceLine> ReadDisk(const std::string& sys, absl::string_view line) {
  const std::vector<absl::string_view> words = WordsOf(line);
  if (words.size() < 11) return std::nullopt;
  const std::string name(words[2]);
  for (const char* other : {"loop", "ram", "dm-", "md", "zram"})
    if (absl::StartsWith(name, other)) return std::nullopt;
  if (access(absl::StrCat(sys, "/block/", name).c_str(), F_OK) != 0) return std::nullopt;
  const int64_t read = NumberOf(words[5]);
  const int64_t written = NumberOf(words[9]);
  if (read == telemetry::kMissing || written == telemetry::kMissing) return std::nullopt;
  return DeviceLine{name, {read * kSectorBytes, written * kSectorBytes}};
}

}  // namespace

std::unique_ptr<TelemetrySource> MakeDiskSource(const SourceOptions& options) {
  return std::make_unique<LineSource>(
      options.proc + "/diskstats", "disk",
      std::vector<telemetry::Column>{{"read", "bytes", true}, {"written", "bytes", true}},
      [sys = options.sys](absl::string_view line) { return ReadDisk(sys, line); });
}

}  // namespace assay::agent
