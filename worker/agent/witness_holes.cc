#include "worker/agent/witness_holes.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace assay::agent {
namespace {

// Of the kernels that were tried 6.1 hides what is read through an overlay, 6.18 does not. One in
// between was not.
constexpr std::pair<int, int> kSeesThroughOverlays = {6, 18};

bool IsOlder(absl::string_view kernel, std::pair<int, int> release) {
  const std::vector<absl::string_view> parts = absl::StrSplit(kernel, absl::ByAnyChar(".-+"));
  std::pair<int, int> is;
  return parts.size() < 2 || !absl::SimpleAtoi(parts[0], &is.first) ||
         !absl::SimpleAtoi(parts[1], &is.second) || is < release;
}

std::string WhyNoGate(bool is_read_only) {
  constexpr char kWhy[] =
      "nothing held readers back until memory and devices had been looked at: pages of a mapping "
      "from before the watch, O_DIRECT by asynchronous I/O and the raw device are not seen";
  return is_read_only
             ? absl::StrCat(kWhy, ", nor mappings of staged copies, which count when they are read")
             : kWhy;
}

}  // namespace

std::vector<WitnessHole> HolesOf(const WatchFacts& facts) {
  std::vector<WitnessHole> holes = {{"W-NO-GATE", WhyNoGate(facts.is_read_only)}};
  const auto add = [&holes](const char* code, std::string why) {
    holes.push_back({code, std::move(why)});
  };
  if (!facts.why_folders.empty())
    add("W-NO-FS-MARK",
        absl::StrCat("hard links and renames elsewhere are not seen: ", facts.why_folders));
  if (!facts.names_processes)
    add("W-NO-PID", "inotify does not tell who reads: the touch may be anybody's");
  if (facts.file_system.may_be_remote)
    add("W-NETWORK-FS", absl::StrCat(facts.file_system.type,
                                     ": what the server and other nodes do is not seen here"));
  if (IsOlder(facts.kernel, kSeesThroughOverlays))
    add("W-OVERLAY-OLD",
        absl::StrCat("Linux ", facts.kernel,
                     ": what is read through an overlay over the dataset may not be seen"));
  return holes;
}

WitnessHole Overflow() {
  return {"W-OVERFLOW", "the kernel has dropped events: the first touch may be among them"};
}

WitnessHole TrainerRoot(absl::string_view found) {
  return {"W-TRAINER-ROOT", absl::StrCat("the run could undo its witness: ", found)};
}

}  // namespace assay::agent
