// The launcher as configured: agents on this host or on nodes of a cluster, each with a throw-away
// enrolment token, or none.

#ifndef SERVER_LOCAL_AGENTS_H_
#define SERVER_LOCAL_AGENTS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

#include "common/clock.h"
#include "server/launch/launcher.h"
#include "server/runtime/core_thread.h"

namespace assay {

// The launcher that `config` names, for agents that call `server_address`. Their directories lie
// below the data directory; their enrolment tokens are made by `core`, which must outlive it, with
// a commit for each. INVALID_ARGUMENT if this host has not the cores that are asked for.
absl::StatusOr<std::unique_ptr<launch::Launcher>> MakeConfiguredLauncher(
    const v1::ServerConfig& config, const Clock& clock, const std::string& server_address,
    runtime::CoreThread* core);

// What the scheduler may ask of it: of "local" one allocation of worker_count nodes, wanted at
// once; of "slurm" one for each submission; of "attach" nothing.
core::LauncherStarted DescribeLauncher(const v1::ServerConfig& config);

}  // namespace assay

#endif  // SERVER_LOCAL_AGENTS_H_
