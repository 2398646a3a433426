#include "worker/agent/rank_powers.h"

#include <linux/capability.h>
#include <unistd.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "common/log.h"
#include "worker/agent/account.h"
#include "worker/agent/witness_holes.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {
namespace {

struct Power {
  int number;
  const char* name;
};
// Each alone suffices to change a witness, its clock or what is below the page cache (W10).
constexpr Power kPowers[] = {{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
                             {CAP_SYS_RAWIO, "CAP_SYS_RAWIO"},
                             {CAP_SYS_TIME, "CAP_SYS_TIME"},
                             {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}};

// The first word after "NAME:"; empty if there is no such line.
absl::string_view FieldOf(absl::string_view status, absl::string_view name) {
  for (const absl::string_view line : absl::StrSplit(status, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(":\t "), absl::SkipEmpty());
    if (words.size() >= 2 && words[0] == name) return words[1];
  }
  return {};
}

// Numbers of accounts, as this process sees them, are those of another namespace.
bool HasOwnUsers(pid_t pid) {
  return ReadFile(absl::StrCat("/proc/", pid, "/uid_map")).value_or("") !=
         ReadFile("/proc/self/uid_map").value_or("");
}

std::string CommandLineOf(absl::string_view process) {
  return ReadFile(absl::StrCat("/proc/", process, "/cmdline")).value_or("");
}

// Just forked, or on its way; none at all: between two programs.
bool IsStillOurs(pid_t pid) {
  const std::string command_line = CommandLineOf(absl::StrCat(pid));
  return command_line.empty() || command_line == CommandLineOf("self") ||
         IsBecomingRank(command_line);
}

}  // namespace

std::optional<std::string> PowersIn(absl::string_view status, uid_t witness, bool has_own_users) {
  if (FieldOf(status, "NoNewPrivs") != "1") return std::nullopt;
  std::vector<std::string> reasons;
  uint64_t capabilities = 0;
  if (!has_own_users && absl::SimpleHexAtoi(FieldOf(status, "CapEff"), &capabilities))
    for (const Power& power : kPowers)
      if (((capabilities >> power.number) & 1) != 0)
        reasons.push_back(absl::StrCat("has ", power.name));
  uid_t account = 0;
  if (absl::SimpleAtoi(FieldOf(status, "Uid"), &account) && (account == witness || account == 0))
    reasons.push_back(absl::StrCat("has the account of its witness or root's (", account, ")"));
  return absl::StrJoin(reasons, ", ");
}

void RankPowers::Look(const std::vector<std::pair<int, pid_t>>& ranks,
                      std::optional<int> touching) {
  for (const auto& [rank, pid] : ranks) {
    if (known_.contains(pid)) continue;
    // First, so that what the status says is of the program that has this command line, or a later
    // one.
    if (rank != touching && IsStillOurs(pid)) continue;
    const absl::StatusOr<std::string> status = ReadFile(absl::StrCat("/proc/", pid, "/status"));
    if (!status.ok()) continue;
    const std::optional<std::string> powers = PowersIn(*status, geteuid(), HasOwnUsers(pid));
    if (!powers.has_value()) continue;
    known_.insert(pid);
    if (powers->empty()) continue;
    const std::string who =
        rank == kLauncherRank ? std::string("the launcher") : absl::StrCat("rank ", rank);
    LOG(WARNING) << "the witness can be undone: " << who << " (pid " << pid << ") " << *powers;
    if (found_.empty()) found_ = absl::StrCat(who, " ", *powers);
  }
}

std::optional<WitnessHole> RankPowers::Hole() const {
  if (found_.empty()) return std::nullopt;
  return TrainerRoot(found_);
}

}  // namespace assay::agent
