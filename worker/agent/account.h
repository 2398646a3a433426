// The accounts under which a node's ranks and steps execute, where the agent may choose, and how a
// process becomes one of theirs for good.

#ifndef WORKER_AGENT_ACCOUNT_H_
#define WORKER_AGENT_ACCOUNT_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/config.pb.h"

namespace assay::agent {

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  bool operator==(const Account&) const = default;
};

// Of ranks: the account of `run_user`; empty means assay-run or, if there is no such account,
// nobody. nullopt: ranks keep the account of this process, because it is not root or the
// configuration says "root". NOT_FOUND for an account that does not exist, INVALID_ARGUMENT for
// another one that is root.
absl::StatusOr<std::optional<Account>> FindRunUser(const v1::WorkerConfig& worker);

// Of a step once its ranks, which execute as `run_user`, have started: that of `step_user`; empty
// means assay-step, else daemon. nullopt: it keeps the account of this process, because ranks do or
// the configuration says "root". The errors of FindRunUser; INVALID_ARGUMENT if it is the ranks'
// account too, who could then write what the step has witnessed.
absl::StatusOr<std::optional<Account>> FindStepUser(const v1::WorkerConfig& worker,
                                                    const std::optional<Account>& run_user);

// Lets ranks of `user` pass through the directory `path` of ours, which they can neither list nor
// write; without a user nobody else passes. Whatever its permission was.
absl::Status GrantPassage(const std::string& path, const std::optional<Account>& user);

// Takes everything below the data directory from everybody else, whatever an earlier version or a
// restored copy left open, and says what was; ranks of `user` keep their way to the runs' and the
// stage directory. Ranks may be at work: what is theirs stays reachable throughout.
absl::Status CloseDataDirectory(const v1::WorkerConfig& worker, const std::optional<Account>& user);

// Makes the directory `path` the step's (none: whose it is), and one in which ranks may write too.
// Nothing without an account of theirs.
absl::Status ShareBetween(const std::optional<Account>& step, const std::optional<Account>& ranks,
                          const std::string& path);

// Makes `path` the user's alone; directories with all below them. Nothing without a user. Only for
// what no rank can have changed yet.
absl::Status GiveTo(const std::optional<Account>& user, const std::string& path);

// Arguments of a process of ours that becomes `command` through ExecAsRank.
inline constexpr char kRankMode[] = "rank";
std::vector<std::string> AsRank(const std::optional<Account>& user,
                                const std::vector<std::string>& command);

// The same in a sandbox (sandbox.h), in the directory in which it is started. The process that does
// so has another number, which comes out at kInheritedFd.
std::vector<std::string> AsRankIn(pid_t first_process, const std::optional<Account>& user,
                                  const std::vector<std::string>& command);

// Whether a process with this command line (/proc/PID/cmdline) has yet to become a command so.
bool IsBecomingRank(absl::string_view command_line);

// The environment of a process that becomes a command with exactly these variables, "NAME=value".
// Until it has given everything up they mean nothing to it: who chooses LD_LIBRARY_PATH of a
// process that is root still chooses what it executes.
std::vector<std::string> AsWholeEnvironment(const std::vector<std::string>& environment);

// What such a process does with its arguments after kRankMode: takes the account, no other groups,
// no capabilities, no new privileges whatever it executes, no core dumps, a private umask; then it
// enters its sandbox, if it has one, takes its whole environment, if it was given one, and executes
// the command, which is looked for in PATH if it has no slash. Returns only if that is impossible,
// with an exit code; standard error says why.
int ExecAsRank(const std::vector<std::string>& arguments);

// Turns this process, which is root and has one thread, into one of `step` for good. What it keeps:
// signals to processes of any account, the way to what it may pass with the group of `ranks`, and
// what it has open.
absl::Status BecomeStep(const Account& step, const Account& ranks);

}  // namespace assay::agent

#endif  // WORKER_AGENT_ACCOUNT_H_
