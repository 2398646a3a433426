#include "worker/agent/witness_holes.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

constexpr int64_t kAllowedShare = 1000;  // of the dataset's bytes
constexpr int64_t kDeviceAllowance = 8 << 20;

// What devices had read, where the dataset's blocks can be told from others, and where they cannot.
std::string ReadByDevices(const GateRecord& record) {
  if (record.is_exact)
    return record.device_bytes == 0
               ? ""
               : absl::StrCat(
                     record.device_bytes,
                     " bytes of the data's own blocks had been read from its device before");
  if (record.device_bytes < 0)
    return absl::StrCat("what devices had read before is not known: ", record.why_inexact);
  if (record.device_bytes <= AllowedDeviceBytes(record.dataset_bytes)) return "";
  return absl::StrFormat(
      "%.1f MiB had been read from the data's devices before, of what is not known: %s",
      static_cast<double>(record.device_bytes) / (1 << 20), record.why_inexact);
}

std::string Unchecked(const GateRecord& record) {
  return absl::StrCat(record.checked_files, " of ", record.file_count,
                      " files, drawn at random, were looked for in memory",
                      record.why_unchecked.empty() ? "" : ": ", record.why_unchecked);
}

}  // namespace

int64_t AllowedDeviceBytes(int64_t dataset_bytes) {
  return std::max(kDeviceAllowance, dataset_bytes / kAllowedShare);
}

WitnessHole NoGate(bool are_copies, absl::string_view why) {
  return {
      "W-NO-GATE",
      absl::StrCat(
          "nothing held readers back until memory and devices had been looked at, so "
          "pages of a mapping from before the watch, O_DIRECT by asynchronous I/O and "
          "the raw device are not seen",
          are_copies ? ", nor mappings of staged copies, which count when they are read: " : ": ",
          why)};
}

WitnessHole GateLost(absl::string_view why) {
  return {"W-GATE-LOST",
          absl::StrCat("readers were let in unseen, because the gate was lost: ", why)};
}

std::vector<WitnessHole> HolesOf(const GateRecord& record) {
  std::vector<WitnessHole> holes;
  if (record.checked_files == 0 && record.file_count > 0)
    holes.push_back({"W-NO-RESIDENCY", Unchecked(record)});
  else if (record.checked_files < record.file_count)
    holes.push_back({"W-SAMPLED", Unchecked(record)});
  if (PagesThatCame(record) > 0)
    holes.push_back(
        {"W-RESIDENT", absl::StrCat(PagesThatCame(record),
                                    " pages of the data had come into memory before; others had "
                                    "been let in ",
                                    record.others_count, " times")});
  if (record.are_copies)
    holes.push_back({"W-STAGED",
                     "the run could read the data before: it has made the copies itself, or they "
                     "are in the node's cache; that it kept them in memory of its own is not "
                     "seen"});
  const std::string read = record.are_copies ? "" : ReadByDevices(record);
  if (!read.empty()) holes.push_back({"W-DEVICE", read});
  return holes;
}

std::vector<WitnessHole> HolesOf(const WatchFacts& facts) {
  std::vector<WitnessHole> holes;
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

WitnessHole ReadBefore(size_t read, size_t looked_at) {
  return {"W-READ-BEFORE",
          absl::StrCat(read, " of ", looked_at,
                       " files whose times of access tell had been read before by a way that was "
                       "not seen, such as another name")};
}

WitnessHole Overflow() {
  return {"W-OVERFLOW", "the kernel has dropped events: the first touch may be among them"};
}

WitnessHole TrainerRoot(absl::string_view found) {
  return {"W-TRAINER-ROOT", absl::StrCat("the run could undo its witness: ", found)};
}

}  // namespace assay::agent
