// All figures of a coordinator, and whether it is ready.

#ifndef SERVER_METRICS_FIGURES_H_
#define SERVER_METRICS_FIGURES_H_

#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "server/metrics/directory_figures.h"
#include "server/metrics/loop_figures.h"

namespace assay::metrics {

// A command that is told of changes (notify in the configuration), since the start.
struct HookView {
  std::string name;
  double delivered = 0;
  double failed_attempts = 0;
  double given_up = 0;
  double lag_seconds = 0;
};

// What is asked at each scrape, on the thread of the port: must be thread-safe, and quick.
struct Questions {
  std::function<size_t()> queue_length;  // commands that wait for the core
  // Calls that were refused for who makes them since the start, by status code.
  std::function<std::vector<std::pair<absl::StatusCode, int64_t>>()> refused_calls;
  std::function<std::vector<HookView>()> hooks;
};

// What does not change while the coordinator serves.
struct Facts {
  std::string version;
  absl::Time start_time;
  std::string database_path;
  int64_t disk_reserve_bytes = 0;
  // When the certificates with which it serves end, by name: "ca", "server".
  std::vector<std::pair<std::string, absl::Time>> certificate_ends;
};

// Thread-safe.
class Figures {
 public:
  // `clock` must outlive this.
  explicit Figures(const Clock* clock);

  // Who is told of the loop's work from its first turn on.
  runtime::LoopObserver* observer() { return &loop_; }
  // A call of `method` ("assay.v1.AdminService/ListTokens") has ended.
  void CallEnded(absl::string_view method, absl::StatusCode code);

  // Call once, before Collect, which asks `questions`.
  void Open(Facts facts, Questions questions);

  absl::Status Readiness() const { return loop_.Readiness(); }
  // All families, by name.
  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  prometheus::Registry registry_;
  LoopFigures loop_;
  prometheus::Family<prometheus::Counter>& calls_;
  Facts facts_;
  Questions questions_;
  std::optional<DirectoryFigures> directory_;
};

}  // namespace assay::metrics

#endif  // SERVER_METRICS_FIGURES_H_
