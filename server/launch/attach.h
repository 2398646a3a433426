// Agents that an operator, systemd or a batch job started: there is nothing to launch.

#ifndef SERVER_LAUNCH_ATTACH_H_
#define SERVER_LAUNCH_ATTACH_H_

#include "absl/strings/str_cat.h"

#include "server/launch/launcher.h"

namespace assay::launch {

class AttachLauncher final : public Launcher {
 public:
  absl::StatusOr<std::optional<Grant>> Acquire(const core::Allocation& allocation) override {
    return absl::FailedPreconditionError(absl::StrCat(
        "launcher \"attach\" starts no agents: start assay-worker on ", allocation.spec.node_count,
        " nodes, or configure launcher { kind: \"local\" }"));
  }
  absl::StatusOr<bool> Release(core::AllocationId /*allocation*/) override { return true; }
};

}  // namespace assay::launch

#endif  // SERVER_LAUNCH_ATTACH_H_
