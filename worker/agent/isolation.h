// What keeps other people's programs from what is not theirs on this node.

#ifndef WORKER_AGENT_ISOLATION_H_
#define WORKER_AGENT_ISOLATION_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

#include "worker/agent/account.h"
#include "worker/agent/sandbox.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {

enum class Isolation {
  kNone,        // nothing: they have the agent's account
  kAccount,     // an account of their own
  kNamespaces,  // a sandbox, besides
};

struct Isolated {
  Isolation how = Isolation::kNone;
  std::optional<Sandbox> sandbox;  // of kNamespaces
};

// As the worker's configuration says, for processes of `user` (nullopt: of this one's account) that
// may see `sight`. An image demands namespaces. Blocks as Sandbox::Open does; FAILED_PRECONDITION
// if namespaces are demanded and cannot be made. `hold_program`, `log_path`: as in SandboxOptions.
absl::StatusOr<Isolated> Isolate(const v1::WorkerConfig& worker, const std::optional<Account>& user,
                                 const Sight& sight, const std::string& hold_program,
                                 const std::string& log_path);

}  // namespace assay::agent

#endif  // WORKER_AGENT_ISOLATION_H_
