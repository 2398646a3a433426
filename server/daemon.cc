#include "server/daemon.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/pki.h"
#include "common/status.h"
#include "server/api/refusal_recorder.h"
#include "server/api/server.h"
#include "server/config.h"
#include "server/local_agents.h"
#include "server/metrics_config.h"
#include "server/notify_config.h"
#include "server/runtime/runtime.h"
#include "server/shown_config.h"
#include "server/slurm_config.h"

namespace assay {
namespace {

constexpr absl::Duration kShutdownGrace = absl::Seconds(2);

absl::StatusOr<api::Backend> MakeBackend(const v1::ServerConfig& config, const Clock* clock,
                                         runtime::Runtime* runtime) {
  api::Backend backend = {.clock = clock,
                          .core = &runtime->core(),
                          .queries = &runtime->queries(),
                          .uploads = &runtime->uploads(),
                          .silences = &runtime->silences(),
                          .watchers = &runtime->watchers(),
                          .verifications = &runtime->verifications(),
                          .upkeep = &runtime->upkeep(),
                          .tokens = &runtime->tokens(),
                          .certificates = &runtime->certificates(),
                          .rules = &runtime->rules(),
                          .version = std::string(api::kBackendVersion),
                          .data_directory = config.data_directory(),
                          .start_time = clock->Wall()};
  ASSIGN_OR_RETURN(backend.ca, CaOf(config));
  ASSIGN_OR_RETURN(const api::ListenOptions listen, ListenOptionsOf(config));
  if (const std::string& pem = listen.server_certificate.certificate_pem; !pem.empty()) {
    ASSIGN_OR_RETURN(backend.certificate_end_time, NotAfter(pem));
  }
  // Which port the kernel chooses is not known yet.
  if (!absl::EndsWith(config.listen_address(), ":0")) backend.tcp_address = config.listen_address();
  backend.web_url = config.web_url();
  backend.retention = {.telemetry_days = config.retention().telemetry_days(),
                       .progress_days = config.retention().progress_days()};
  ShownConfig shown = ShowConfig(config);
  backend.configuration = std::move(shown.text);
  backend.configuration_left_out = std::move(shown.left_out);
  return backend;
}

// Where to reach this daemon, for scripts and tests: the port may have been chosen by the kernel. A
// full disk keeps nobody from asking: then there is no file rather than one of an earlier start.
absl::Status WriteAddress(const v1::ServerConfig& config, const api::Server& server,
                          const metrics::MetricsServer* figures) {
  std::string text;
  if (!server.tcp_address().empty()) absl::StrAppend(&text, "tcp ", server.tcp_address(), "\n");
  if (!config.unix_socket_path().empty())
    absl::StrAppend(&text, "unix ", config.unix_socket_path(), "\n");
  if (figures != nullptr) absl::StrAppend(&text, "metrics ", figures->address(), "\n");
  const std::string path = JoinPath(config.data_directory(), "address");
  if (const absl::StatusOr<std::string> present = ReadFile(path); present.ok() && *present == text)
    return absl::OkStatus();
  const absl::Status status = WriteFileAtomic(path, text, kPrivateFile);
  if (!absl::IsResourceExhausted(status)) return status;
  LOG(WARNING) << "not written file=address status=" << Quoted(status);
  return RemoveTree(path);
}

}  // namespace

absl::Status Serve(const v1::ServerConfig& config, const sigset_t& signals, bool is_loss_accepted) {
  const RealClock clock;
  const std::unique_ptr<metrics::Figures> figures = MakeFigures(config, &clock);
  runtime::RuntimeOptions options = RuntimeOptionsOf(config);
  if (figures != nullptr) options.observer = figures->observer();
  options.is_loss_accepted = is_loss_accepted;
  ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Runtime> runtime,
                   runtime::Runtime::Open(&clock, std::move(options)));
  const auth::Authenticator authenticator(geteuid(), LocalUsersOf(config));
  ASSIGN_OR_RETURN(api::Backend backend, MakeBackend(config, &clock, runtime.get()));
  api::RefusalLog refusals(&clock);
  backend.refusals = &refusals;
  api::RefusalRecorder refusal_recorder(&refusals, &runtime->core());
  api::WebCodes web_codes(&clock);
  backend.web_codes = &web_codes;
  backend.metrics_text = ScrapeOf(figures.get());
  const std::unique_ptr<api::NodeEnrolment> nodes = MakeNodeEnrolment(config);
  backend.nodes = nodes.get();
  ASSIGN_OR_RETURN(api::ListenOptions listen, ListenOptionsOf(config));
  listen.on_call_end = CallCounter(figures.get());
  ASSIGN_OR_RETURN(const std::unique_ptr<notify::Notifier> notifier,
                   StartNotifier(config, &clock, runtime.get()));
  ASSIGN_OR_RETURN(const std::unique_ptr<metrics::MetricsServer> metrics,
                   StartMetrics(config, figures.get(), runtime.get(), &refusals, notifier.get(),
                                backend.start_time));
  ASSIGN_OR_RETURN(const std::unique_ptr<api::Server> server,
                   api::Server::Start(std::move(listen), &authenticator, std::move(backend)));
  // Whoever it still answers has come by the server.
  const absl::Cleanup no_more_nodes = [&nodes] {
    if (nodes != nullptr) nodes->Stop();
  };
  RETURN_IF_ERROR(WriteAddress(config, *server, metrics.get()));
  LOG(INFO) << "serving tcp=" << server->tcp_address() << " unix=" << config.unix_socket_path()
            << " data=" << config.data_directory();
  ASSIGN_OR_RETURN(std::unique_ptr<launch::Launcher> launcher,
                   MakeConfiguredLauncher(config, clock, server->tcp_address(), &runtime->core()));
  runtime->StartLaunching(launcher.get(), DescribeLauncher(config));
  int signal = 0;
  CHECK(sigwait(&signals, &signal) == 0);
  LOG(INFO) << "stopping signal=" << signal;
  runtime->StopLaunching();
  launcher.reset();  // agents started here end with it
  if (nodes != nullptr) nodes->Stop();
  refusal_recorder.Stop();
  runtime->core().Stop();  // last commit; calls that wait are answered, new ones refused
  server->Shutdown(kShutdownGrace);
  runtime->Stop();
  LOG(INFO) << "stopped";
  return absl::OkStatus();
}

}  // namespace assay
