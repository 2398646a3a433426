#include "worker/agent/stall_watch.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/file.h"

namespace assay::agent {
namespace {

constexpr char kStalled[] = "R-PAU-005";
constexpr int64_t kStallNs = 2'000'000'000;
// Nobody has watched for longer: what was meanwhile is not known.
constexpr int64_t kGapNs = 3'000'000'000;
// What agents, monitoring and logs of a node that does nothing else move; by everything together.
constexpr double kOthersBytesPerSecond = 100'000;

using Words = std::vector<absl::string_view>;

Words WordsIn(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
}

int64_t NumberAt(const Words& words, size_t index) {
  int64_t number = 0;
  return index < words.size() && absl::SimpleAtoi(words[index], &number) ? number : 0;
}

// "254 0 vda 21402 3 1543304 9002 12 0 96 ..."; sectors read and written.
int64_t DiskBytes(const std::string& proc) {
  constexpr int64_t kSectorBytes = 512;
  int64_t sectors = 0;
  const std::string text = ReadFile(proc + "/diskstats").value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const Words words = WordsIn(line);
    sectors += NumberAt(words, 5) + NumberAt(words, 9);
  }
  return sectors * kSectorBytes;
}

// "eth0: 1234 0 0 0 0 0 0 0 5678 ..."; received and sent, but not within the node.
int64_t NetworkBytes(const std::string& proc) {
  int64_t bytes = 0;
  const std::string text = ReadFile(proc + "/net/dev").value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::EndsWith(parts.first, "lo")) continue;
    const Words words = WordsIn(parts.second);
    bytes += NumberAt(words, 0) + NumberAt(words, 8);
  }
  return bytes;
}

// The names in a folder; none where there is no such folder.
std::vector<std::string> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error))
    names.push_back(it->path().filename().string());
  return names;
}

}  // namespace

// Of all of its threads, in kernel and program; nullopt: it has ended, or is hidden.
std::optional<int64_t> StallWatch::TicksOf(pid_t pid) const {
  const std::string text = ReadFile(absl::StrCat(options_.proc, "/", pid, "/stat")).value_or("");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const Words words = WordsIn(absl::string_view(text).substr(name_end + 1));
  constexpr size_t kTicks = 11;  // behind the name
  return NumberAt(words, kTicks) + NumberAt(words, kTicks + 1);
}

// What fabrics have moved past the network's own counters; nullopt where one does not tell.
std::optional<int64_t> StallWatch::FabricBytes() const {
  constexpr int64_t kWordBytes = 4;
  if (!NamesIn(options_.sys + "/class/cxi").empty()) return std::nullopt;
  int64_t words = 0;
  const std::string devices = options_.sys + "/class/infiniband";
  for (const std::string& device : NamesIn(devices)) {
    const std::string ports = absl::StrCat(devices, "/", device, "/ports");
    for (const std::string& port : NamesIn(ports))
      for (const char* counter : {"port_rcv_data", "port_xmit_data"}) {
        const absl::StatusOr<std::string> text =
            ReadFile(absl::StrCat(ports, "/", port, "/counters/", counter));
        int64_t count = 0;
        if (!text.ok() || !absl::SimpleAtoi(*text, &count)) return std::nullopt;
        words += count;
      }
  }
  return words * kWordBytes;
}

// Of any maker, or other accelerators.
bool StallWatch::HasGpus() const {
  for (const std::string& name : NamesIn(options_.dev)) {
    int number = 0;
    absl::string_view rest = name;
    if (name == "kfd" || name == "accel") return true;
    if ((absl::ConsumePrefix(&rest, "nvidia") || absl::ConsumePrefix(&rest, "hl")) &&
        absl::SimpleAtoi(rest, &number))
      return true;
  }
  const std::vector<std::string> renderers = NamesIn(options_.dev + "/dri");
  return std::any_of(renderers.begin(), renderers.end(),
                     [](const std::string& name) { return absl::StartsWith(name, "renderD"); });
}

std::optional<StallWatch::Work> StallWatch::ReadWork(
    const std::vector<std::pair<int, pid_t>>& ranks) const {
  if (HasGpus()) return std::nullopt;
  const std::optional<int64_t> fabric_bytes = FabricBytes();
  if (!fabric_bytes.has_value()) return std::nullopt;
  Work work;
  for (const auto& [_, pid] : ranks) {
    work.processes.push_back(pid);
    const std::vector<pid_t> below = options_.descendants(pid);
    work.processes.insert(work.processes.end(), below.begin(), below.end());
  }
  for (const pid_t pid : work.processes)
    work.cpu_ticks += TicksOf(pid).value_or(0);
  work.moved_bytes = DiskBytes(options_.proc) + NetworkBytes(options_.proc) + *fabric_bytes;
  return work;
}

bool StallWatch::HasMoved(const Work& work, int64_t passed_ns) const {
  const double passed_s = static_cast<double>(passed_ns) * 1e-9;
  const auto moved = static_cast<double>(work.moved_bytes - work_->moved_bytes);
  return work.processes != work_->processes || work.cpu_ticks != work_->cpu_ticks || moved < 0 ||
         moved > kOthersBytesPerSecond * passed_s;
}

bool StallWatch::Close() {
  work_.reset();
  if (!since_.has_value()) return false;
  const Stamp since = *std::exchange(since_, std::nullopt);
  const int64_t length_ns = quiet_ns_ - since.mono_ns;
  if (length_ns < kStallNs || faults_.size() >= kNodeFaultsMax) return false;
  faults_.push_back(
      {kStalled,
       absl::StrFormat("no rank of this node had a processor for about %.0f s from %s, and neither "
                       "disks nor networks moved what others do not",
                       static_cast<double>(length_ns) * 1e-9,
                       absl::FormatTime("%H:%M:%SZ", absl::FromUnixMicros(since.wall_us),
                                        absl::UTCTimeZone()))});
  return true;
}

bool StallWatch::Look(const std::vector<std::pair<int, pid_t>>& ranks, const Stamp& now) {
  const int64_t passed_ns = looked_ns_.has_value() ? now.mono_ns - *looked_ns_ : kGapNs + 1;
  if (passed_ns < absl::ToInt64Nanoseconds(kInterval) && !ranks.empty()) return false;
  looked_ns_ = now.mono_ns;
  std::optional<int64_t> ticks = ranks.empty() ? std::nullopt : std::optional<int64_t>(0);
  for (const auto& [_, pid] : ranks) {
    const std::optional<int64_t> own = TicksOf(pid);
    ticks = own.has_value() && ticks.has_value() ? std::optional(*ticks + *own) : std::nullopt;
  }
  const bool is_quiet = ticks.has_value() && ticks == rank_ticks_ && passed_ns <= kGapNs;
  rank_ticks_ = ticks;
  if (!is_quiet) return Close();
  std::optional<Work> work = ReadWork(ranks);
  if (!work.has_value()) return Close();
  const bool has_moved = !work_.has_value() || HasMoved(*work, passed_ns);
  const bool is_told = has_moved && Close();
  if (has_moved) since_ = now;
  quiet_ns_ = now.mono_ns;
  work_ = std::move(work);
  return is_told;
}

}  // namespace assay::agent
