#include "worker/agent/rank_watch.h"

#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
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

constexpr char kTraced[] = "R-PAU-003";
constexpr char kFrozen[] = "R-PAU-004";

std::string TextOf(const std::string& path) {
  return ReadFile(path).value_or("");
}

}  // namespace

// A child keeps its number until it is reaped, and this process reaps it last of all: another start
// is another process all the same. One that ends meanwhile, or is hidden, is no other.
void RankWatch::LookWho(int rank, pid_t pid) {
  const std::string text = TextOf(absl::StrCat(proc_, "/", pid, "/stat"));
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  constexpr size_t kStartTicks = 19;  // behind the name
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::string_view(text).substr(name_end + 1), ' ', absl::SkipWhitespace());
  int64_t ticks = 0;
  if (words.size() <= kStartTicks || !absl::SimpleAtoi(words[kStartTicks], &ticks)) return;
  const int64_t started = started_.try_emplace(pid, ticks).first->second;
  if (ticks == started || replaced_.has_value()) return;
  replaced_ = absl::StrCat(
      "rank ", rank, " (pid ", pid, ") is not the process that was started any more: that began ",
      started, " clock ticks after the node's boot, and this one ", ticks,
      "; somebody has restored it from an image, and no clock has timed this run");
}

void RankWatch::LookWhichBoot() {
  const std::string text = TextOf(absl::StrCat(proc_, "/sys/kernel/random/boot_id"));
  const std::string now(absl::StripAsciiWhitespace(text));
  if (boot_id_.empty()) boot_id_ = now;
  if (now.empty() || now == boot_id_ || replaced_.has_value()) return;
  replaced_ = absl::StrCat("the node's boot was ", boot_id_, " when the run began and is ", now,
                           " now: somebody has restored the run from an image, and no clock has "
                           "timed it");
}

// "TracerPid:	0" where nobody does.
std::optional<std::string> RankWatch::TracerOf(pid_t pid) const {
  for (absl::string_view line :
       absl::StrSplit(TextOf(absl::StrCat(proc_, "/", pid, "/status")), '\n')) {
    pid_t tracer = 0;
    if (!absl::ConsumePrefix(&line, "TracerPid:") ||
        !absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &tracer) || tracer == 0)
      continue;
    const std::string name = TextOf(absl::StrCat(proc_, "/", tracer, "/comm"));
    return absl::StrCat("traced by ", absl::StripAsciiWhitespace(name), " (pid ", tracer, ")");
  }
  return std::nullopt;
}

// A line for each hierarchy: "6:freezer:/a/b" of version 1, "0::/a/b" of version 2. That a group
// above is frozen is said of those below, too.
bool RankWatch::IsFrozen(pid_t pid) const {
  for (const absl::string_view line :
       absl::StrSplit(TextOf(absl::StrCat(proc_, "/", pid, "/cgroup")), '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    if (parts[1] == "freezer") {
      const std::string state =
          TextOf(absl::StrCat(cgroups_, "/freezer", parts[2], "/freezer.state"));
      if (absl::StartsWith(state, "FROZEN") || absl::StartsWith(state, "FREEZING")) return true;
    }
    if (parts[0] != "0") continue;
    for (const char* root : {"", "/unified"}) {
      const std::string events = TextOf(absl::StrCat(cgroups_, root, parts[2], "/cgroup.events"));
      if (absl::StrContains(events, "frozen 1")) return true;
    }
  }
  return false;
}

bool RankWatch::Look(const std::vector<std::pair<int, pid_t>>& ranks, const Stamp& now) {
  const bool is_due =
      !looked_ns_.has_value() || now.mono_ns - *looked_ns_ >= absl::ToInt64Nanoseconds(kInterval);
  if (!is_due && !ranks.empty()) return false;
  looked_ns_ = now.mono_ns;
  std::set<Key> present;
  const auto note = [&](int rank, const char* rule, std::string what) {
    present.emplace(rank, rule);
    open_.try_emplace({rank, rule}, Hindrance{now, std::move(what)});
  };
  LookWhichBoot();
  for (const auto& [rank, pid] : ranks) {
    LookWho(rank, pid);
    if (std::optional<std::string> tracer = TracerOf(pid); tracer.has_value())
      note(rank, kTraced, *std::move(tracer));
    if (IsFrozen(pid)) note(rank, kFrozen, "frozen with its control group");
  }
  const size_t count = faults_.size();
  for (auto it = open_.begin(); it != open_.end();) {
    const auto& [key, hindrance] = *it;
    if (present.contains(key)) {
      ++it;
      continue;
    }
    const double length_s = static_cast<double>(now.mono_ns - hindrance.since.mono_ns) * 1e-9;
    if (faults_.size() < kNodeFaultsMax)
      faults_.push_back(
          {key.second,
           absl::StrFormat(
               "rank %d was %s for about %.0f s from %s", key.first, hindrance.what, length_s,
               absl::FormatTime("%H:%M:%SZ", absl::FromUnixMicros(hindrance.since.wall_us),
                                absl::UTCTimeZone()))});
    it = open_.erase(it);
  }
  return faults_.size() > count;
}

}  // namespace assay::agent
