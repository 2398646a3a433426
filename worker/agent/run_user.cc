#include "worker/agent/run_user.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"

namespace assay::agent {
namespace {

constexpr char kOwnAccount[] = "-";      // in place of the numbers of an account
constexpr int kExitCannotExecute = 126;  // as a shell says it
constexpr mode_t kPassage = 0710;
constexpr mode_t kPrivateMask = 077;

// nullopt if there is no such account.
absl::StatusOr<std::optional<RunUser>> FindAccount(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16 << 10> buffer{};
  const int error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return std::optional<RunUser>({name, found->pw_uid, found->pw_gid});
  if (error == 0 || error == ENOENT || error == ESRCH) return std::optional<RunUser>();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot look up the account ", name));
}

absl::Status Failed(const char* what) {
  return absl::ErrnoToStatus(errno, what);
}

// Of root's powers only those to take another account are needed, and not for long.
absl::Status TakeAccount(uid_t uid, gid_t gid) {
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL)
      return Failed("PR_CAPBSET_DROP");
  if (setgroups(0, nullptr) != 0) return Failed("setgroups");
  if (setresgid(gid, gid, gid) != 0) return Failed("setresgid");
  if (setresuid(uid, uid, uid) != 0) return Failed("setresuid");
  if (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0)
    return absl::InternalError("the way back to root is open");
  return absl::OkStatus();
}

absl::Status GiveUpPrivileges(const std::string& account) {
  umask(kPrivateMask);
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return Failed("setrlimit");
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
    return Failed("PR_CAP_AMBIENT");
  if (account != kOwnAccount) {
    const size_t colon = account.find(':');
    uid_t uid = 0;
    gid_t gid = 0;
    if (colon == std::string::npos || !absl::SimpleAtoi(account.substr(0, colon), &uid) ||
        !absl::SimpleAtoi(account.substr(colon + 1), &gid) || uid == 0 || gid == 0)
      return absl::InvalidArgumentError(absl::StrCat("no account: ", account));
    RETURN_IF_ERROR(TakeAccount(uid, gid));
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("PR_SET_NO_NEW_PRIVS");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<RunUser>> FindRunUser(const v1::WorkerConfig& worker) {
  const std::string& name = worker.run_user();
  if (geteuid() != 0 || name == "root") return std::optional<RunUser>();
  ASSIGN_OR_RETURN(std::optional<RunUser> user, FindAccount(name.empty() ? kRunUserDefault : name));
  if (!user.has_value() && name.empty()) {
    ASSIGN_OR_RETURN(user, FindAccount(kRunUserFallback));
    LOG(WARNING) << "there is no account " << kRunUserDefault << ": ranks run as "
                 << kRunUserFallback << ", which other services may use too; make the account "
                 << "(useradd --system " << kRunUserDefault << "), or name another as run_user";
  }
  if (!user.has_value())
    return absl::NotFoundError(
        absl::StrCat("run_user: there is no account ", name.empty() ? kRunUserFallback : name,
                     "; make it, or say \"root\" to let ranks keep the agent's account"));
  if (user->uid == 0 || user->gid == 0)
    return absl::InvalidArgumentError(absl::StrCat("run_user: ", user->name,
                                                   " is root, or of its "
                                                   "group; say \"root\" if that is meant"));
  return user;
}

absl::Status GrantPassage(const std::string& path, const std::optional<RunUser>& user) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  if (user.has_value() && fchown(fd.get(), static_cast<uid_t>(-1), user->gid) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot give ", path, " to a group"));
  if (fchmod(fd.get(), user.has_value() ? kPassage : mode_t{kPrivateDirectory}) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot set the permission of ", path));
  return absl::OkStatus();
}

absl::Status GiveTo(const std::optional<RunUser>& user, const std::string& path) {
  if (!user.has_value()) return absl::OkStatus();
  const auto give = [&user](const std::string& one) {
    if (lchown(one.c_str(), user->uid, user->gid) == 0) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot give ", one, " to ", user->name));
  };
  RETURN_IF_ERROR(give(path));
  std::error_code error;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(path, error)))
    return absl::OkStatus();
  std::filesystem::recursive_directory_iterator entry(path, error);
  const std::filesystem::recursive_directory_iterator end;
  for (; !error && entry != end; entry.increment(error))
    RETURN_IF_ERROR(give(entry->path().string()));
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", path));
  return absl::OkStatus();
}

absl::Status CloseDataDirectory(const v1::WorkerConfig& worker,
                                const std::optional<RunUser>& user) {
  const std::string& root = worker.data_directory();
  const std::string runs = JoinPath(root, "runs");
  const std::string stage = JoinPath(root, "stage");
  for (const std::string& path : {root, runs, stage}) {
    RETURN_IF_ERROR(MakeDirectories(path, kPrivateDirectory));
    RETURN_IF_ERROR(GrantPassage(path, user));
  }
  std::vector<std::string> directories = {root, stage};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(runs));
  for (const std::string& name : names) {
    directories.push_back(JoinPath(runs, name));
    RETURN_IF_ERROR(GrantPassage(directories.back(), user));
  }
  for (const std::string& directory : directories) {
    ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(directory));
    for (const std::string& entry : entries) {
      const std::string path = JoinPath(directory, entry);
      if (path == runs || path == stage) continue;
      ASSIGN_OR_RETURN(const std::vector<std::string> loose, MakePrivate(path));
      for (const std::string& one : loose)
        LOG(WARNING) << "others could look into " << one << ": not any more";
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> AsRank(const std::optional<RunUser>& user,
                                const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {
      "/proc/self/exe", kRankMode,
      user.has_value() ? absl::StrCat(user->uid, ":", user->gid) : std::string(kOwnAccount)};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

int ExecAsRank(const std::vector<std::string>& arguments) {
  absl::Status status = absl::InvalidArgumentError("an account and a command are missing");
  if (arguments.size() >= 2) status = GiveUpPrivileges(arguments[0]);
  if (status.ok()) {
    std::vector<char*> argv;
    for (size_t i = 1; i < arguments.size(); ++i)
      argv.push_back(const_cast<char*>(arguments[i].c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot execute ", arguments[1]));
  }
  LOG(ERROR) << "not a rank: " << status;
  return kExitCannotExecute;
}

}  // namespace assay::agent
