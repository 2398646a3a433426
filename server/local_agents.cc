#include "server/local_agents.h"

#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/secret.h"
#include "common/status.h"
#include "server/core/types.h"
#include "server/launch/local.h"
#include "server/launch/registry.h"

namespace assay {
namespace {

constexpr char kLocal[] = "local";

// Long enough for an agent that starts on a busy host.
constexpr absl::Duration kTokenLifetime = absl::Hours(1);

// A new enrolment token for `worker`, committed.
absl::StatusOr<std::string> MakeEnrolmentToken(const Clock& clock, const std::string& worker,
                                               runtime::CoreThread* core) {
  const std::string secret = MakeToken();
  core::Command command = {.principal = std::string(core::kCoordinator),
                           .body = core::CreateToken{
                               .kind = core::TokenKind::kEnrol,
                               .role = "worker",
                               .principal = worker,
                               .secret_sha256 = TokenHash(secret),
                               .expires_at_us = absl::ToUnixMicros(clock.Wall() + kTokenLifetime)}};
  std::promise<absl::Status> committed;
  core->Post(std::move(command), [&committed](const absl::StatusOr<core::Reply>& reply) {
    committed.set_value(reply.status());
  });
  RETURN_IF_ERROR(committed.get_future().get());
  return secret;
}

}  // namespace

absl::StatusOr<std::unique_ptr<launch::Launcher>> MakeConfiguredLauncher(
    const v1::ServerConfig& config, const Clock& clock, const std::string& server_address,
    runtime::CoreThread* core) {
  const v1::LauncherConfig& launcher = config.launcher();
  launch::LocalOptions local;
  local.directory = JoinPath(config.data_directory(), "agents");
  local.worker_program = launcher.worker_program();
  if (local.worker_program.empty()) {
    ASSIGN_OR_RETURN(const std::string programs, ProgramDirectory());
    local.worker_program = JoinPath(programs, "assay-worker");
  }
  if (launcher.kind() == kLocal) {
    ASSIGN_OR_RETURN(local.cores,
                     launch::ShareCores(static_cast<int32_t>(std::thread::hardware_concurrency()),
                                        launcher.worker_count(), launcher.cores_per_worker()));
    ASSIGN_OR_RETURN(local.ca_pem, ReadFile(config.tls().ca_certificate_path()));
  }
  local.server_address = server_address;
  local.make_enrolment_token = [&clock, core](const std::string& worker) {
    return MakeEnrolmentToken(clock, worker, core);
  };
  return launch::MakeLauncher(launcher.kind(), local);
}

core::LauncherStarted DescribeLauncher(const v1::ServerConfig& config) {
  const v1::LauncherConfig& launcher = config.launcher();
  if (launcher.kind() != kLocal) return {.launcher = std::string(core::kAttachLauncher)};
  return {.launcher = kLocal,
          .allocation_count_max = 1,
          .node_count_min = launcher.worker_count(),
          .node_count_max = launcher.worker_count(),
          .is_wanted_at_once = true};
}

}  // namespace assay
