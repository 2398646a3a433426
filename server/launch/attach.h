// Agents that an operator, systemd or a batch job started: there is nothing to launch.

#ifndef SERVER_LAUNCH_ATTACH_H_
#define SERVER_LAUNCH_ATTACH_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/launch/launcher.h"

namespace assay::launch {

class AttachLauncher final : public Launcher {
 public:
  absl::Status Start(const LaunchRequest& request) override {
    return absl::FailedPreconditionError(
        absl::StrCat("launcher \"attach\" starts no agents: start assay-worker for ",
                     request.worker, " on its node, or configure launcher { kind: \"local\" }"));
  }
  absl::Status Stop(const std::string& /*worker*/) override { return absl::OkStatus(); }
  std::vector<AgentInfo> Describe() const override { return {}; }
};

}  // namespace assay::launch

#endif  // SERVER_LAUNCH_ATTACH_H_
