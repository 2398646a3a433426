// The figures for Prometheus as configured, and what they are asked of.

#ifndef SERVER_METRICS_CONFIG_H_
#define SERVER_METRICS_CONFIG_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"

#include "common/clock.h"
#include "server/api/call_end.h"
#include "server/api/refusal_log.h"
#include "server/metrics/figures.h"
#include "server/metrics/metrics_server.h"
#include "server/notify/notifier.h"
#include "server/runtime/runtime.h"

namespace assay {

// What is wrong with metrics_address, a line each; whether its form is right is not looked at.
std::vector<std::string> MetricsProblems(const v1::ServerConfig& config);

// nullptr if the configuration has no metrics_address.
std::unique_ptr<metrics::Figures> MakeFigures(const v1::ServerConfig& config, const Clock* clock);

// Counts calls in `figures`, which must outlive it; empty for nullptr.
api::OnCallEnd CallCounter(metrics::Figures* figures);

// What a scrape of `figures` gets; empty for nullptr.
std::function<std::string()> ScrapeOf(metrics::Figures* figures);

// Serves `figures`, which MakeFigures has made; nullptr if it has made none. `notifier` may be
// none; all that is passed must outlive the server. Errors of MetricsServer::Start, and of files
// that have changed since the configuration was loaded.
absl::StatusOr<std::unique_ptr<metrics::MetricsServer>> StartMetrics(
    const v1::ServerConfig& config, metrics::Figures* figures, runtime::Runtime* runtime,
    const api::RefusalLog* refusals, const notify::Notifier* notifier, absl::Time start_time);

}  // namespace assay

#endif  // SERVER_METRICS_CONFIG_H_
