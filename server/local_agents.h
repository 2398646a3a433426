// The agents that launcher { kind: "local" } asks for: each with a throw-away enrolment token.

#ifndef SERVER_LOCAL_AGENTS_H_
#define SERVER_LOCAL_AGENTS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

#include "common/clock.h"
#include "server/launch/launcher.h"
#include "server/runtime/core_thread.h"

namespace assay {

// The launcher that `config` names. Its agents' directories lie below the data directory.
absl::StatusOr<std::unique_ptr<launch::Launcher>> MakeConfiguredLauncher(
    const v1::ServerConfig& config);

// Starts worker_count agents named local-0, local-1 ... that call `server_address`; nothing to do
// for another kind than "local". Blocks for a commit per agent.
absl::Status StartLocalAgents(const v1::ServerConfig& config, const Clock& clock,
                              const std::string& server_address, runtime::CoreThread* core,
                              launch::Launcher* launcher);

}  // namespace assay

#endif  // SERVER_LOCAL_AGENTS_H_
