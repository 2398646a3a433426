#include "server/launch/slurm/job_list.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/status.h"
#include "server/core/id.h"

namespace assay::launch::slurm {
namespace {

constexpr size_t kHostsMax = 100'000;

int64_t Seconds(absl::string_view text) {
  int64_t seconds = 0;
  return absl::SimpleAtoi(text, &seconds) && seconds > 0 ? seconds : 0;
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

absl::Status NoHosts(absl::string_view list) {
  return absl::InvalidArgumentError(absl::StrCat("\"", list, "\" is no list of hosts"));
}

// Parts at commas outside of brackets.
std::vector<absl::string_view> SplitHosts(absl::string_view list) {
  std::vector<absl::string_view> parts;
  size_t begin = 0;
  bool is_inside = false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') is_inside = true;
    if (list[i] == ']') is_inside = false;
    if (list[i] != ',' || is_inside) continue;
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(list.substr(begin));
  return parts;
}

// "0-2" or "07" as its numbers, as wide as they are written.
absl::StatusOr<std::vector<std::string>> ExpandRange(absl::string_view range) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrContains(range, '-') ? std::pair<absl::string_view, absl::string_view>(
                                          absl::StrSplit(range, absl::MaxSplits('-', 1)))
                                    : std::pair(range, range);
  int64_t first = 0;
  int64_t last = 0;
  if (!IsNumber(ends.first) || !IsNumber(ends.second) || !absl::SimpleAtoi(ends.first, &first) ||
      !absl::SimpleAtoi(ends.second, &last) || last < first ||
      last - first >= static_cast<int64_t>(kHostsMax))
    return NoHosts(range);
  std::vector<std::string> numbers;
  for (int64_t n = first; n <= last; ++n) {
    std::string number = absl::StrCat(n);
    if (number.size() < ends.first.size()) number.insert(0, ends.first.size() - number.size(), '0');
    numbers.push_back(std::move(number));
  }
  return numbers;
}

// One part, of which each bracket multiplies what stands before it.
absl::StatusOr<std::vector<std::string>> ExpandPart(absl::string_view part) {
  std::vector<std::string> hosts = {""};
  while (!part.empty()) {
    const size_t open = part.find('[');
    const absl::string_view plain = part.substr(0, open);
    if (absl::StrContains(plain, ']')) return NoHosts(part);
    for (std::string& host : hosts)
      absl::StrAppend(&host, plain);
    if (open == absl::string_view::npos) break;
    const size_t close = part.find(']', open);
    if (close == absl::string_view::npos) return NoHosts(part);
    std::vector<std::string> numbers;
    for (const absl::string_view range :
         absl::StrSplit(part.substr(open + 1, close - open - 1), ',')) {
      ASSIGN_OR_RETURN(const std::vector<std::string> some, ExpandRange(range));
      numbers.insert(numbers.end(), some.begin(), some.end());
      if (hosts.size() * numbers.size() > kHostsMax) return NoHosts(part);
    }
    std::vector<std::string> next;
    for (const std::string& host : hosts)
      for (const std::string& number : numbers)
        next.push_back(absl::StrCat(host, number));
    hosts = std::move(next);
    part.remove_prefix(close + 1);
  }
  return hosts;
}

constexpr auto kPhases = std::to_array<std::pair<absl::string_view, JobPhase>>({
    {"PENDING", JobPhase::kWaiting},       {"CONFIGURING", JobPhase::kWaiting},
    {"REQUEUED", JobPhase::kWaiting},      {"REQUEUE_FED", JobPhase::kWaiting},
    {"REQUEUE_HOLD", JobPhase::kWaiting},  {"SPECIAL_EXIT", JobPhase::kWaiting},
    {"RESV_DEL_HOLD", JobPhase::kWaiting}, {"RUNNING", JobPhase::kRunning},
    {"RESIZING", JobPhase::kRunning},      {"SIGNALING", JobPhase::kRunning},
    {"COMPLETING", JobPhase::kEnding},     {"STAGE_OUT", JobPhase::kEnding},
    {"SUSPENDED", JobPhase::kSuspended},   {"STOPPED", JobPhase::kSuspended},
    {"COMPLETED", JobPhase::kEnded},       {"CANCELLED", JobPhase::kEnded},
    {"TIMEOUT", JobPhase::kEnded},         {"NODE_FAIL", JobPhase::kEnded},
    {"PREEMPTED", JobPhase::kEnded},       {"FAILED", JobPhase::kEnded},
    {"BOOT_FAIL", JobPhase::kEnded},       {"OUT_OF_MEMORY", JobPhase::kEnded},
    {"DEADLINE", JobPhase::kEnded},        {"REVOKED", JobPhase::kEnded},
});

}  // namespace

std::vector<Job> ParseJobs(absl::string_view text) {
  constexpr size_t kFields = 9;
  std::vector<Job> jobs;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::MaxSplits('|', kFields - 1));
    if (fields.size() != kFields || !IsNumber(fields[0])) continue;
    jobs.push_back({.id = std::string(fields[0]),
                    .state = std::string(fields[1]),
                    .reason = std::string(fields[2]),
                    .submit_s = Seconds(fields[3]),
                    .start_s = Seconds(fields[4]),
                    .end_s = Seconds(fields[5]),
                    .hosts = std::string(fields[6]),
                    .name = std::string(fields[7]),
                    .comment = std::string(fields[8])});
  }
  return jobs;
}

absl::StatusOr<std::vector<std::string>> ExpandHosts(absl::string_view list) {
  std::vector<std::string> hosts;
  if (list.empty()) return hosts;
  for (const absl::string_view part : SplitHosts(list)) {
    if (part.empty()) return NoHosts(list);
    ASSIGN_OR_RETURN(std::vector<std::string> some, ExpandPart(part));
    if (hosts.size() + some.size() > kHostsMax) return NoHosts(list);
    std::move(some.begin(), some.end(), std::back_inserter(hosts));
  }
  return hosts;
}

std::optional<std::string> ParseJobId(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view id = line.substr(0, line.find(';'));
    if (IsNumber(id)) return std::string(id);
  }
  return std::nullopt;
}

std::string ParseEnd(absl::string_view text, absl::string_view id, absl::string_view name) {
  std::string end;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '|');
    if (fields.size() != 3 || fields[0] != id || fields[1] != name) continue;
    const absl::string_view state = fields[2].substr(0, fields[2].find(' '));
    if (PhaseOf(state) == JobPhase::kEnded) end = std::string(state);
  }
  return end;
}

std::string JobName(core::AllocationId allocation) {
  return absl::StrCat("assay-a", allocation.number);
}

std::string JobComment(absl::string_view instance, const core::Allocation& allocation) {
  const core::SubmissionId submission = allocation.spec.submission;
  return absl::StrCat("assay ", instance, " ", allocation.id.ToString(), " ",
                      submission.is_none() ? "-" : submission.ToString());
}

std::optional<core::AllocationId> ParseComment(absl::string_view instance,
                                               absl::string_view comment) {
  const std::vector<absl::string_view> words = absl::StrSplit(comment, ' ');
  if (words.size() != 4 || words[0] != "assay" || words[1] != instance) return std::nullopt;
  const absl::StatusOr<core::AllocationId> id = core::ParseAllocationId(words[2]);
  if (!id.ok()) return std::nullopt;
  return *id;
}

JobPhase PhaseOf(absl::string_view state) {
  for (const auto& [word, phase] : kPhases)
    if (state == word) return phase;
  return JobPhase::kUnknown;
}

bool IsHopeless(absl::string_view reason) {
  for (const absl::string_view word :
       {"PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "DependencyNeverSatisfied",
        "JobHeldAdmin", "launch failed requeued held"})
    if (reason == word) return true;
  return absl::StartsWith(reason, "Invalid") ||
         ((absl::StartsWith(reason, "Assoc") || absl::StartsWith(reason, "QOS")) &&
          absl::EndsWith(reason, "PerJob"));
}

}  // namespace assay::launch::slurm
