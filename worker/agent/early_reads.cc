#include "worker/agent/early_reads.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "worker/agent/witness_holes.h"

namespace assay::agent {
namespace {

// "read_bytes: 4096" of the text of /proc/PID/io.
std::optional<int64_t> CountOf(absl::string_view io, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(io, '\n')) {
    int64_t count = 0;
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ": ") &&
        absl::SimpleAtoi(line, &count))
      return count;
  }
  return std::nullopt;
}

void Add(std::optional<int64_t> count, std::optional<int64_t>* sum) {
  if (count.has_value()) *sum = sum->value_or(0) + *count;
}

// The paths of /proc/PID/maps: what follows the fifth blank-separated field.
void AddMapped(absl::string_view maps, std::set<std::string>* paths) {
  for (const absl::string_view line : absl::StrSplit(maps, '\n')) {
    const size_t at = line.find('/');
    if (at != absl::string_view::npos) paths->emplace(line.substr(at));
  }
}

bool IsBelow(absl::string_view path, const std::vector<std::string>& roots) {
  return std::any_of(roots.begin(), roots.end(), [path](absl::string_view root) {
    return absl::ConsumePrefix(&root, path.substr(0, root.size())) && root.empty();
  });
}

}  // namespace

EarlyReads::EarlyReads(Options options)
    : options_(std::move(options)),
      servers_(MakeServerSource({.proc = options_.proc, .sys = options_.sys})),
      servers_begin_(ServerBytes()) {}

std::optional<int64_t> EarlyReads::ServerBytes() {
  const std::vector<telemetry::Column>& columns = servers_->columns();
  std::vector<int64_t> values(columns.size(), telemetry::kMissing);
  servers_->Sample(values);
  std::optional<int64_t> sum;
  for (size_t i = 0; i < columns.size(); ++i)
    if (absl::EndsWith(columns[i].name, ".read") && values[i] != telemetry::kMissing)
      Add(values[i], &sum);
  return sum;
}

RunReads EarlyReads::Now(const std::vector<pid_t>& processes, const Clock& clock) {
  const MonoTime deadline = clock.Mono() + kBudget;
  RunReads reads;
  std::set<std::string> mapped;
  for (const pid_t pid : processes) {
    const std::string process = absl::StrCat(options_.proc, "/", pid);
    const std::string io = ReadFile(process + "/io").value_or("");
    Add(CountOf(io, "read_bytes"), &reads.storage);
    Add(CountOf(io, "rchar"), &reads.asked);
    if (clock.Mono() < deadline) AddMapped(ReadFile(process + "/maps").value_or(""), &mapped);
  }
  for (const std::string& path : mapped) {
    struct stat info {};
    if (!IsBelow(path, options_.roots) && stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      reads.mapped += info.st_size;
  }
  const std::optional<int64_t> servers = ServerBytes();
  if (servers.has_value() && servers_begin_.has_value())
    reads.servers = std::max<int64_t>(0, *servers - *servers_begin_);
  return reads;
}

std::optional<WitnessHole> EarlyReads::HoleOf(const RunReads& reads) const {
  const int64_t allowed = AllowedDeviceBytes(options_.dataset_bytes);
  const auto mebibytes = [](int64_t count) { return static_cast<double>(count) / (1 << 20); };
  std::string why;
  if (reads.storage.value_or(0) - reads.mapped > allowed)
    why = absl::StrFormat(
        "the run's processes had read %.1f MiB from storage before, and the files that they map "
        "have %.1f MiB",
        mebibytes(*reads.storage), mebibytes(reads.mapped));
  if (reads.servers.value_or(0) > allowed)
    absl::StrAppendFormat(&why, "%sservers had sent this node %.1f MiB since the watch began",
                          why.empty() ? "" : "; ", mebibytes(*reads.servers));
  if (why.empty()) return std::nullopt;
  return WitnessHole{"W-DEVICE", absl::StrCat(why, ": of what is not known")};
}

}  // namespace assay::agent
