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
    const v1::ServerConfig& config) {
  launch::LocalOptions local;
  local.directory = JoinPath(config.data_directory(), "agents");
  local.worker_program = config.launcher().worker_program();
  if (local.worker_program.empty()) {
    ASSIGN_OR_RETURN(const std::string programs, ProgramDirectory());
    local.worker_program = JoinPath(programs, "assay-worker");
  }
  return launch::MakeLauncher(config.launcher().kind(), local);
}

absl::Status StartLocalAgents(const v1::ServerConfig& config, const Clock& clock,
                              const std::string& server_address, runtime::CoreThread* core,
                              launch::Launcher* launcher) {
  if (config.launcher().kind() != "local") return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const std::vector<std::vector<int32_t>> shares,
      launch::ShareCores(static_cast<int32_t>(std::thread::hardware_concurrency()),
                         config.launcher().worker_count(), config.launcher().cores_per_worker()));
  ASSIGN_OR_RETURN(const std::string ca_pem, ReadFile(config.tls().ca_certificate_path()));
  for (size_t i = 0; i < shares.size(); ++i) {
    launch::LaunchRequest request = {.worker = absl::StrCat("local-", i),
                                     .server_address = server_address,
                                     .ca_pem = ca_pem,
                                     .cores = shares[i]};
    ASSIGN_OR_RETURN(request.enrolment_token, MakeEnrolmentToken(clock, request.worker, core));
    RETURN_IF_ERROR(launcher->Start(request));
  }
  return absl::OkStatus();
}

}  // namespace assay
