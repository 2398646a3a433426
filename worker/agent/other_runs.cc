#include "worker/agent/other_runs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {
namespace {

constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

// Who holds a lock (flock) of which file, by its inode. A line of /proc/locks:
// "1: FLOCK  ADVISORY  WRITE 712 fe:00:131074 0 EOF"; one that waits has "->" behind its number.
using Holds = std::set<std::pair<pid_t, ino_t>>;

Holds ReadLocks() {
  Holds holds;
  const absl::StatusOr<std::string> text = ReadFile("/proc/locks");
  if (!text.ok()) return holds;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 6 || words[1] != "FLOCK" || words[3] != "WRITE") continue;
    const std::vector<absl::string_view> file = absl::StrSplit(words[5], ':');
    pid_t pid = 0;
    uint64_t inode = 0;
    if (file.size() == 3 && absl::SimpleAtoi(words[4], &pid) && absl::SimpleAtoi(file[2], &inode))
      holds.emplace(pid, inode);
  }
  return holds;
}

bool IsAgents(const struct stat& info, uid_t agent) {
  return (info.st_uid == agent || info.st_uid == 0) && (info.st_mode & kWritableByOthers) == 0;
}

// Which directory the process says that it is the step of: what follows the word "step".
std::string ClaimOf(pid_t pid) {
  const absl::StatusOr<std::string> line = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
  if (!line.ok()) return "";
  const std::vector<std::string> words = absl::StrSplit(*line, '\0');
  const auto word = std::find(words.begin(), words.end(), "step");
  return word == words.end() || word + 1 == words.end() ? "" : *(word + 1);
}

bool HoldsRun(pid_t pid, uid_t agent, const Holds& holds) {
  const RunDirectory claim(ClaimOf(pid));
  const std::filesystem::path path = claim.path();
  if (!path.is_absolute() || !RunDirectory::ParseName(path.filename().string()).has_value())
    return false;
  struct stat directory {};
  struct stat lock {};
  return lstat(claim.path().c_str(), &directory) == 0 && S_ISDIR(directory.st_mode) &&
         IsAgents(directory, agent) && lstat(claim.LockPath().c_str(), &lock) == 0 &&
         S_ISREG(lock.st_mode) && IsAgents(lock, agent) && holds.contains({pid, lock.st_ino});
}

}  // namespace

bool IsStepOfRun(pid_t pid, uid_t agent) {
  return HoldsRun(pid, agent, ReadLocks());
}

std::vector<pid_t> OtherSteps(uid_t agent) {
  const Holds holds = ReadLocks();
  std::set<pid_t> steps;
  for (const auto& [pid, _] : holds)
    if (pid != getpid() && HoldsRun(pid, agent, holds)) steps.insert(pid);
  return {steps.begin(), steps.end()};
}

}  // namespace assay::agent
