// assay-web, the site: flags, signals, exit codes.

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"
#include "server/web/http_server.h"
#include "server/web/site.h"
#include "server/web/web_config.h"

namespace assay::web {
namespace {

constexpr char kUsage[] =
    R"(Usage: assay-web --config=FILE [--check_config]
       assay-web --help | --version

The site of a coordinator: pages for people, JSON for programs. It is a client without authority;
what it shows is what the coordinator lets each visitor see.

  --config=FILE   the configuration, a WebConfig as text proto (docs/operator.md)
  --check_config  only read and check the configuration
  --end_with=PID  end when that process does, which has started this one
  --version       print the version
  --help          print this

Ends at SIGTERM and SIGINT, after the answers that are on their way.
Exit status: 0 done, 1 could not serve, 2 wrong flags or configuration.

  assay-web --config=/etc/assay-web/web.textproto
)";

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr rlim_t kDescriptorsWanted = 65536;  // a connection each for thousands of visitors
constexpr absl::Duration kShutdownGrace = absl::Seconds(5);

struct Flags {
  std::string config;
  pid_t end_with = 0;
  bool is_check = false;
  bool is_help = false;
  bool is_version = false;
  std::string unknown;
};

Flags ParseFlags(const std::vector<std::string>& arguments) {
  Flags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view value = arguments[i];
    if (arguments[i] == "--help") {
      flags.is_help = true;
    } else if (arguments[i] == "--version") {
      flags.is_version = true;
    } else if (arguments[i] == "--check_config") {
      flags.is_check = true;
    } else if (arguments[i] == "--config" && i + 1 < arguments.size()) {
      flags.config = arguments[++i];
    } else if (absl::ConsumePrefix(&value, "--config=")) {
      flags.config = std::string(value);
    } else if (absl::ConsumePrefix(&value, "--end_with=") &&
               absl::SimpleAtoi(value, &flags.end_with)) {
      continue;
    } else {
      flags.unknown = arguments[i];
    }
  }
  return flags;
}

// Blocks the signals that end the program in all threads, so that sigwait gets them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  CHECK(std::signal(SIGPIPE, SIG_IGN) != SIG_ERR);
  return signals;
}

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, kDescriptorsWanted);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) LOG(WARNING) << "cannot raise RLIMIT_NOFILE";
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
  CHECK(sigwait(&signals, &signal) == 0);
  LOG(INFO) << "stopping signal=" << signal;
  server->Shutdown(kShutdownGrace);
  site.Stop();
  LOG(INFO) << "stopped requests=" << server->counts().requests;
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& arguments) {
  const Flags flags = ParseFlags(arguments);
  if (flags.is_help) {
    std::cout << kUsage;
    return 0;
  }
  if (flags.is_version) {
    std::cout << "assay-web " << ASSAY_VERSION << "\n";
    return 0;
  }
  if (!flags.unknown.empty() || flags.config.empty()) {
    if (!flags.unknown.empty()) std::cerr << "error: unknown argument " << flags.unknown << "\n";
    std::cerr << kUsage;
    return kExitUsage;
  }
  umask(S_IRWXG | S_IRWXO);
  const sigset_t signals = BlockSignals();
  if (flags.end_with != 0) EndWithParent(flags.end_with);
  const absl::StatusOr<v1::WebConfig> config = LoadWebConfig(flags.config);
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return kExitUsage;
  }
  if (flags.is_check) return 0;
  RaiseDescriptorLimit();
  const absl::Status status = ServeSite(*config, signals);
  if (status.ok()) return 0;
  LOG(ERROR) << "cannot serve: " << status.message();
  return kExitFailure;
}

}  // namespace
}  // namespace assay::web

int main(int argc, char** argv) {
  return assay::web::Main({argv + 1, argv + argc});
}
