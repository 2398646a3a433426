#include "server/local_agents.h"

#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/log.h"
#include "common/secret.h"
#include "common/status.h"
#include "server/core/types.h"
#include "server/launch/local.h"
#include "server/launch/registry.h"
#include "server/slurm_config.h"

namespace assay {
namespace {

constexpr char kLocal[] = "local";
constexpr char kSlurm[] = "slurm";

// Long enough for an agent that starts on a busy host.
constexpr absl::Duration kTokenLifetime = absl::Hours(1);
// On a cluster, where a token lies in a file that other machines see.
constexpr absl::Duration kFleetTokenLifetime = absl::Minutes(10);

// A new enrolment token for `worker`, committed.
absl::StatusOr<std::string> MakeEnrolmentToken(const Clock& clock, const std::string& worker,
                                               absl::Duration lifetime, runtime::CoreThread* core) {
  const std::string secret = MakeToken();
  core::Command command = {
      .principal = std::string(core::kCoordinator),
      .body = core::CreateToken{.kind = core::TokenKind::kEnrol,
                                .role = "worker",
                                .principal = worker,
                                .secret_sha256 = TokenHash(secret),
                                .expires_at_us = absl::ToUnixMicros(clock.Wall() + lifetime)}};
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
  launch::LaunchOptions options;
  std::string worker_program = launcher.worker_program();
  if (worker_program.empty()) {
    ASSIGN_OR_RETURN(const std::string programs, ProgramDirectory());
    worker_program = JoinPath(programs, "assay-worker");
  }
  if (launcher.kind() == kLocal) {
    launch::LocalOptions& local = options.local;
    local.directory = JoinPath(config.data_directory(), "agents");
    local.worker_program = worker_program;
    ASSIGN_OR_RETURN(local.cores,
                     launch::ShareCores(static_cast<int32_t>(std::thread::hardware_concurrency()),
                                        launcher.worker_count(), launcher.cores_per_worker()));
    ASSIGN_OR_RETURN(local.ca_pem, ReadFile(config.tls().ca_certificate_path()));
    local.server_address = server_address;
    local.make_enrolment_token = [&clock, core](const std::string& worker) {
      return MakeEnrolmentToken(clock, worker, kTokenLifetime, core);
    };
  }
  if (launcher.kind() == kSlurm) {
    ASSIGN_OR_RETURN(options.slurm, SlurmOptionsOf(config, worker_program));
    ASSIGN_OR_RETURN(const std::string programs, ProgramDirectory());
    options.slurm.folder.local_program = JoinPath(programs, "assay-worker");
    options.slurm.clock = &clock;
    options.slurm.folder.make_enrolment_token = [&clock, core](const std::string& worker) {
      return MakeEnrolmentToken(clock, worker, kFleetTokenLifetime, core);
    };
    options.slurm.report = [core](core::LaunchReported report) {
      core->Post({std::string(core::kCoordinator), std::move(report)},
                 [](const absl::StatusOr<core::Reply>& reply) {
                   if (!reply.ok())
                     LOG(WARNING) << "launcher's word refused status=" << Quoted(reply.status());
                 });
    };
  }
  return launch::MakeLauncher(launcher.kind(), options);
}

core::LauncherStarted DescribeLauncher(const v1::ServerConfig& config) {
  const v1::LauncherConfig& launcher = config.launcher();
  if (launcher.kind() == kSlurm) return DescribeSlurm(launcher.slurm());
  if (launcher.kind() != kLocal) return {.launcher = std::string(core::kAttachLauncher)};
  return {.launcher = kLocal,
          .allocation_count_max = 1,
          .node_count_min = launcher.worker_count(),
          .node_count_max = launcher.worker_count(),
          .is_wanted_at_once = true};
}

}  // namespace assay
