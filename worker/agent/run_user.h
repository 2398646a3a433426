// The account under which a node's ranks execute, where the agent may choose one, and how a process
// becomes theirs for good.

#ifndef WORKER_AGENT_RUN_USER_H_
#define WORKER_AGENT_RUN_USER_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

namespace assay::agent {

struct RunUser {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  bool operator==(const RunUser&) const = default;
};

inline constexpr char kRunUserDefault[] = "assay-run";
inline constexpr char kRunUserFallback[] = "nobody";

// The account of `run_user`; empty means kRunUserDefault or, if there is no such account,
// kRunUserFallback. nullopt: ranks keep the account of this process, because it is not root or the
// configuration says "root". NOT_FOUND for an account that does not exist, INVALID_ARGUMENT for
// another one that is root.
absl::StatusOr<std::optional<RunUser>> FindRunUser(const v1::WorkerConfig& worker);

// Lets ranks of `user` pass through the directory `path` of ours, which they can neither list nor
// write; without a user nobody else passes. Whatever its permission was.
absl::Status GrantPassage(const std::string& path, const std::optional<RunUser>& user);

// Takes everything below the data directory from everybody else, whatever an earlier version or a
// restored copy left open, and says what was; ranks of `user` keep their way to the runs' and the
// stage directory. Ranks may be at work: what is theirs stays reachable throughout.
absl::Status CloseDataDirectory(const v1::WorkerConfig& worker, const std::optional<RunUser>& user);

// Makes `path` the user's alone; directories with all below them. Nothing without a user. Only for
// what no rank can have changed yet.
absl::Status GiveTo(const std::optional<RunUser>& user, const std::string& path);

// Arguments of a process of ours that becomes `command` through ExecAsRank.
inline constexpr char kRankMode[] = "rank";
std::vector<std::string> AsRank(const std::optional<RunUser>& user,
                                const std::vector<std::string>& command);

// What such a process does with its arguments after kRankMode: takes the account, no other groups,
// no capabilities, no new privileges whatever it executes, no core dumps, a private umask; then it
// executes the command. Returns only if that is impossible, with an exit code; standard error says
// why.
int ExecAsRank(const std::vector<std::string>& arguments);

}  // namespace assay::agent

#endif  // WORKER_AGENT_RUN_USER_H_
