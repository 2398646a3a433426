#include "server/metrics_config.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/pki.h"
#include "common/status.h"
#include "server/api/services.h"
#include "server/config.h"

namespace assay {
namespace {

absl::StatusOr<metrics::Facts> FactsOf(const api::ListenOptions& listen,
                                       const runtime::Runtime& runtime, absl::Time start_time) {
  metrics::Facts facts = {.version = std::string(api::kBackendVersion),
                          .start_time = start_time,
                          .database_path = runtime.database_path(),
                          .disk_reserve_bytes = runtime::CoreLoopOptions().disk_reserve_bytes};
  const std::pair<const char*, const std::string&> certificates[] = {
      {"ca", listen.ca_pem}, {"server", listen.server_certificate.certificate_pem}};
  for (const auto& [name, pem] : certificates) {
    if (pem.empty()) continue;
    ASSIGN_OR_RETURN(const absl::Time end, NotAfter(pem));
    facts.certificate_ends.emplace_back(name, end);
  }
  return facts;
}

std::vector<metrics::HookView> HooksOf(const notify::Notifier* notifier) {
  std::vector<metrics::HookView> views;
  if (notifier == nullptr) return views;
  for (const notify::HookFigures& hook : notifier->figures())
    views.push_back({.name = hook.hook,
                     .delivered = static_cast<double>(hook.delivered),
                     .failed_attempts = static_cast<double>(hook.failed_attempts),
                     .given_up = static_cast<double>(hook.given_up),
                     .lag_seconds = hook.lag_seconds});
  return views;
}

}  // namespace

std::vector<std::string> MetricsProblems(const v1::ServerConfig& config) {
  const std::string& address = config.metrics_address();
  std::vector<std::string> problems;
  if (address.empty()) return problems;
  if (address == config.listen_address() && !absl::EndsWith(address, ":0"))
    problems.push_back(absl::StrCat("metrics_address: \"", address,
                                    "\" is listen_address: give it a port of its own"));
  if (!metrics::IsLoopback(address) && config.tls().certificate_path().empty()) {
    problems.push_back(absl::StrCat(
        "metrics_address: \"", address,
        "\" is not loopback and needs tls { certificate_path, key_path }, by which it speaks "
        "HTTPS; run assay admin init, or give 127.0.0.1 and a port"));
  }
  return problems;
}

std::unique_ptr<metrics::Figures> MakeFigures(const v1::ServerConfig& config, const Clock* clock) {
  if (config.metrics_address().empty()) return nullptr;
  return std::make_unique<metrics::Figures>(clock);
}

api::OnCallEnd CallCounter(metrics::Figures* figures) {
  if (figures == nullptr) return {};
  return [figures](absl::string_view method, absl::StatusCode code) {
    figures->CallEnded(method, code);
  };
}

std::function<std::string()> ScrapeOf(metrics::Figures* figures) {
  if (figures == nullptr) return {};
  return [figures] { return metrics::Answer(*figures, "GET", "/metrics").body; };
}

absl::StatusOr<std::unique_ptr<metrics::MetricsServer>> StartMetrics(
    const v1::ServerConfig& config, metrics::Figures* figures, runtime::Runtime* runtime,
    const api::RefusalLog* refusals, const notify::Notifier* notifier, absl::Time start_time) {
  if (figures == nullptr) return nullptr;
  ASSIGN_OR_RETURN(api::ListenOptions listen, ListenOptionsOf(config));
  ASSIGN_OR_RETURN(metrics::Facts facts, FactsOf(listen, *runtime, start_time));
  figures->Open(std::move(facts),
                {.queue_length = [runtime] { return runtime->core().queue_length(); },
                 .refused_calls =
                     [refusals] {
                       std::vector<std::pair<absl::StatusCode, int64_t>> counts;
                       for (const absl::StatusCode code : {absl::StatusCode::kUnauthenticated,
                                                           absl::StatusCode::kPermissionDenied})
                         counts.emplace_back(code, refusals->count(code));
                       return counts;
                     },
                 .hooks = [notifier] { return HooksOf(notifier); }});
  metrics::MetricsAddress address = {.listen_address = config.metrics_address()};
  if (!metrics::IsLoopback(address.listen_address))
    address.certificate = std::move(listen.server_certificate);
  absl::StatusOr<std::unique_ptr<metrics::MetricsServer>> server =
      metrics::MetricsServer::Start(address, figures);
  if (!server.ok()) return Annotate(server.status(), "metrics_address");
  LOG(INFO) << "metrics address=" << (*server)->address()
            << " tls=" << (address.certificate.key_pem.empty() ? "no" : "yes");
  return server;
}

}  // namespace assay
