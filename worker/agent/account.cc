#include "worker/agent/account.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/agent/image_store.h"
#include "worker/agent/sandbox.h"

namespace assay::agent {
namespace {

constexpr char kOwnProgram[] = "/proc/self/exe";
constexpr char kInSandbox = '@';         // after an account: the first process of the sandbox
constexpr char kOwnAccount[] = "-";      // in place of the numbers of an account
constexpr int kExitCannotExecute = 126;  // as a shell says it
constexpr mode_t kPassage = 0710;
constexpr mode_t kShared = 0770;
constexpr mode_t kPrivateMask = 077;
constexpr char kVariableMark = '+';  // no variable that anybody looks for begins with it

// nullopt if there is no such account.
absl::StatusOr<std::optional<Account>> FindAccount(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16 << 10> buffer{};
  const int error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return std::optional<Account>({name, found->pw_uid, found->pw_gid});
  if (error == 0 || error == ENOENT || error == ESRCH) return std::optional<Account>();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot look up the account ", name));
}

// Who executes what, as the configuration and its messages call it.
struct Role {
  const char* field;
  const char* processes;
  const char* preferred;
  const char* fallback;
};
constexpr Role kRanks = {"run_user", "ranks", "assay-run", "nobody"};
constexpr Role kSteps = {"step_user", "steps", "assay-step", "daemon"};

absl::StatusOr<Account> Choose(const Role& role, const std::string& name) {
  ASSIGN_OR_RETURN(std::optional<Account> account,
                   FindAccount(name.empty() ? role.preferred : name));
  if (!account.has_value() && name.empty()) {
    ASSIGN_OR_RETURN(account, FindAccount(role.fallback));
    LOG(WARNING) << "there is no account " << role.preferred << ": " << role.processes << " run as "
                 << role.fallback << ", which other services may use too; make the account "
                 << "(useradd --system " << role.preferred << "), or name another as "
                 << role.field;
  }
  if (!account.has_value())
    return absl::NotFoundError(absl::StrCat(
        role.field, ": there is no account ", name.empty() ? role.fallback : name,
        "; make it, or say \"root\" to let ", role.processes, " keep the agent's account"));
  if (account->uid == 0 || account->gid == 0)
    return absl::InvalidArgumentError(absl::StrCat(role.field, ": ", account->name,
                                                   " is root, or of its group; say \"root\" if "
                                                   "that is meant"));
  return *std::move(account);
}

absl::Status Failed(const char* what) {
  return absl::ErrnoToStatus(errno, what);
}

// Of root's powers only those to take another account are needed, and not for long.
absl::Status TakeAccount(uid_t uid, gid_t gid, std::span<const gid_t> groups) {
  for (int capability = 0; capability <= CAP_LAST_CAP; ++capability)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL)
      return Failed("PR_CAPBSET_DROP");
  if (setgroups(groups.size(), groups.data()) != 0) return Failed("setgroups");
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
    RETURN_IF_ERROR(TakeAccount(uid, gid, {}));
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("PR_SET_NO_NEW_PRIVS");
  return absl::OkStatus();
}

// What a process that is not root may still do; nothing else can come back.
absl::Status KeepOnly(int capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const auto index = static_cast<size_t>(CAP_TO_INDEX(capability));
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  sets[index].permitted = CAP_TO_MASK(capability);
  sets[index].effective = CAP_TO_MASK(capability);
  return syscall(SYS_capset, &header, sets.data()) == 0 ? absl::OkStatus() : Failed("capset");
}

std::string AccountWord(const std::optional<Account>& user) {
  return user.has_value() ? absl::StrCat(user->uid, ":", user->gid) : std::string(kOwnAccount);
}

// What the first word of a rank's arguments says: an account, and a sandbox if there is one.
absl::Status TakePlace(const std::string& word) {
  const size_t mark = word.find(kInSandbox);
  RETURN_IF_ERROR(GiveUpPrivileges(word.substr(0, mark)));
  if (mark == std::string::npos) return absl::OkStatus();
  pid_t first_process = 0;
  if (!absl::SimpleAtoi(word.substr(mark + 1), &first_process))
    return absl::InvalidArgumentError(absl::StrCat("no sandbox: ", word));
  return EnterSandbox(first_process);
}

// What AsWholeEnvironment has marked, as execve wants it; no more than its end if nothing is.
std::vector<char*> WholeEnvironment() {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (**variable == kVariableMark) variables.push_back(*variable + 1);
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

absl::StatusOr<std::optional<Account>> FindRunUser(const v1::WorkerConfig& worker) {
  if (geteuid() != 0 || worker.run_user() == "root") return std::optional<Account>();
  return Choose(kRanks, worker.run_user());
}

absl::StatusOr<std::optional<Account>> FindStepUser(const v1::WorkerConfig& worker,
                                                    const std::optional<Account>& run_user) {
  if (!run_user.has_value() || worker.step_user() == "root") return std::optional<Account>();
  ASSIGN_OR_RETURN(Account account, Choose(kSteps, worker.step_user()));
  if (account.uid == run_user->uid)
    return absl::InvalidArgumentError(absl::StrCat(
        "step_user: ", account.name,
        " is the account of ranks too, who could change what the step has seen; name another"));
  return std::optional<Account>(std::move(account));
}

absl::Status GrantPassage(const std::string& path, const std::optional<Account>& user) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  if (user.has_value() && fchown(fd.get(), static_cast<uid_t>(-1), user->gid) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot give ", path, " to a group"));
  if (fchmod(fd.get(), user.has_value() ? kPassage : mode_t{kPrivateDirectory}) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot set the permission of ", path));
  return absl::OkStatus();
}

absl::Status ShareBetween(const std::optional<Account>& step, const std::optional<Account>& ranks,
                          const std::string& path) {
  if (!ranks.has_value()) return absl::OkStatus();
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const uid_t owner = step.has_value() ? step->uid : static_cast<uid_t>(-1);
  if (!fd.is_open() || fchown(fd.get(), owner, ranks->gid) != 0 || fchmod(fd.get(), kShared) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot share ", path));
  return absl::OkStatus();
}

absl::Status GiveTo(const std::optional<Account>& user, const std::string& path) {
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
                                const std::optional<Account>& user) {
  const std::string& root = worker.data_directory();
  const std::string runs = JoinPath(root, "runs");
  const std::string stage = JoinPath(root, "stage");
  const std::string images = JoinPath(root, kImagesFolder);
  for (const std::string& path : {root, runs, stage}) {
    RETURN_IF_ERROR(MakeDirectories(path, kPrivateDirectory));
    RETURN_IF_ERROR(GrantPassage(path, user));
  }
  // What is below the stage directory belongs to ranks and their steps, and nobody else gets there.
  std::vector<std::string> directories = {root};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(runs));
  for (const std::string& name : names) {
    directories.push_back(JoinPath(runs, name));
    RETURN_IF_ERROR(GrantPassage(directories.back(), user));
  }
  for (const std::string& directory : directories) {
    ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(directory));
    for (const std::string& entry : entries) {
      const std::string path = JoinPath(directory, entry);
      // A program's source and image are for its account to read; nobody else gets there.
      const bool is_source = directory != root && entry == "code";
      if (path == runs || path == stage || path == images || is_source) continue;
      ASSIGN_OR_RETURN(const std::vector<std::string> loose, MakePrivate(path));
      for (const std::string& one : loose)
        LOG(WARNING) << "others could look into " << one << ": not any more";
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> AsRank(const std::optional<Account>& user,
                                const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {kOwnProgram, kRankMode, AccountWord(user)};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

std::vector<std::string> AsRankIn(pid_t first_process, const std::optional<Account>& user,
                                  const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {
      kOwnProgram, kRankMode,
      absl::StrCat(AccountWord(user), std::string(1, kInSandbox), first_process)};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

bool IsBecomingRank(absl::string_view command_line) {
  const std::string beginning =
      absl::StrCat(kOwnProgram, absl::string_view("\0", 1), kRankMode, absl::string_view("\0", 1));
  return absl::StartsWith(command_line, beginning);
}

std::vector<std::string> AsWholeEnvironment(const std::vector<std::string>& environment) {
  std::vector<std::string> marked;
  marked.reserve(environment.size());
  for (const std::string& variable : environment)
    marked.push_back(absl::StrCat(std::string(1, kVariableMark), variable));
  return marked;
}

int ExecAsRank(const std::vector<std::string>& arguments) {
  absl::Status status = absl::InvalidArgumentError("an account and a command are missing");
  if (arguments.size() >= 2) status = TakePlace(arguments[0]);
  if (status.ok()) {
    std::vector<char*> argv;
    for (size_t i = 1; i < arguments.size(); ++i)
      argv.push_back(const_cast<char*>(arguments[i].c_str()));
    argv.push_back(nullptr);
    std::vector<char*> environment = WholeEnvironment();
    char** const own_environment = environ;
    if (environment.size() > 1) environ = environment.data();
    execvp(argv[0], argv.data());
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot execute ", arguments[1]));
    environ = own_environment;  // that of the command ends here, and what logs looks into it
  }
  LOG(ERROR) << "not a rank: " << status;
  return kExitCannotExecute;
}

absl::Status BecomeStep(const Account& step, const Account& ranks) {
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return Failed("setrlimit");
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return Failed("PR_SET_KEEPCAPS");
  RETURN_IF_ERROR(TakeAccount(step.uid, step.gid, std::array{ranks.gid}));
  RETURN_IF_ERROR(KeepOnly(CAP_KILL));  // the ranks' end
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("PR_SET_NO_NEW_PRIVS");
  // The steps of other runs tell by its program that a process is one (touch_monitor.h).
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) return Failed("PR_SET_DUMPABLE");
  return absl::OkStatus();
}

}  // namespace assay::agent
