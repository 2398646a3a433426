// assay-web, the site: flags, signals, exit codes.

#include <sys/stat.h>

#include <csignal>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"

#include "common/clock.h"
#include "common/daemon.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"
#include "server/web/http_server.h"
#include "server/web/site.h"
#include "server/web/web_config.h"

namespace assay::web {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr absl::Duration kShutdownGrace = absl::Seconds(5);

constexpr char kDescription[] =
    "The site of a coordinator: pages for people, JSON for programs. It is a client without\n"
    "authority; what it shows is what the coordinator lets each visitor see.";
constexpr char kFooter[] =
    "Ends at SIGTERM and SIGINT, after the answers that are on their way. Reads its certificate "
    "and\n"
    "key again at SIGHUP.\n"
    "Exit status: 0 done, 1 could not serve, 2 wrong flags or configuration.\n\n"
    "  assay-web --config=/etc/assay-web/web.textproto";

struct Flags {
  std::string config;
  pid_t end_with = 0;
  bool is_check = false;
};

void Declare(CLI::App& app, Flags& flags) {
  app.add_option("--config", flags.config,
                 "the configuration, a WebConfig as text proto (docs/operator.md)")
      ->required()
      ->option_text("FILE");
  app.add_flag("--check_config", flags.is_check, "only read and check the configuration");
  app.add_option("--end_with", flags.end_with,
                 "end when that process does, which has started this one")
      ->option_text("PID");
  app.set_version_flag("--version", "assay-web " ASSAY_VERSION, "print the version");
  app.set_help_flag("--help", "print this");
  app.footer(kFooter);
}

// At SIGHUP: nobody is signed out, and what is wrong leaves everything as it was.
void RenewCertificate(const v1::WebConfig& config, HttpServer* server) {
  const absl::StatusOr<CertificateAndKey> pair = CertificateOf(config);
  const absl::Status status = pair.ok() ? server->Renew(*pair) : pair.status();
  if (!status.ok())
    LOG(ERROR) << "the certificate stays as it was: " << status.message();
  else
    LOG(INFO) << "read certificate again path=" << Quoted(config.certificate_path());
}

absl::Status ServeSite(const v1::WebConfig& config, const sigset_t& signals) {
  const RealClock clock;
  ASSIGN_OR_RETURN(HttpServerOptions http, HttpServerOptionsOf(config));
  ASSIGN_OR_RETURN(SiteOptions options, SiteOptionsOf(config));
  Site site(std::move(options), &clock);
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server,
                   HttpServer::Start(std::move(http), &site));
  LOG(INFO) << "serving address=" << server->address() << " url=" << Quoted(config.url())
            << " coordinator=" << Quoted(config.server_address());
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGHUP)
    RenewCertificate(config, server.get());
  LOG(INFO) << "stopping signal=" << signal;
  server->Shutdown(kShutdownGrace);
  site.Stop();
  LOG(INFO) << "stopped requests=" << server->counts().requests;
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app(kDescription, "assay-web");
  Flags flags;
  Declare(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  umask(S_IRWXG | S_IRWXO);
  sigset_t signals = BlockEndSignals();
  sigaddset(&signals, SIGHUP);
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  if (flags.end_with != 0) EndWithParent(flags.end_with);
  const absl::StatusOr<v1::WebConfig> config = LoadWebConfig(flags.config);
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return kExitUsage;
  }
  if (flags.is_check) return 0;
  RaiseDescriptorLimit(kDaemonDescriptors);
  const absl::Status status = ServeSite(*config, signals);
  if (status.ok()) return 0;
  LOG(ERROR) << "cannot serve: " << status.message();
  return kExitFailure;
}

}  // namespace
}  // namespace assay::web

int main(int argc, char** argv) {
  return assay::web::Main(argc, argv);
}
