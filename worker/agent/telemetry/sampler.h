// Keeps the telemetry of a node while a run goes on.

#ifndef WORKER_AGENT_TELEMETRY_SAMPLER_H_
#define WORKER_AGENT_TELEMETRY_SAMPLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/telemetry/series.h"
#include "worker/agent/telemetry/live_figures.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {

// Takes samples and keeps to a budget. Not thread-safe.
class Sampler {
 public:
  struct Clocks {
    std::function<int64_t()> node_ns;  // by which the samples are stamped
    std::function<int64_t()> cpu_ns;   // what this thread has used
  };

  // Makes the file at `path` anew, with a column for the sampler's own time, and that of the newest
  // figures at `live_path`, without which it goes on. errno's code if it cannot.
  static absl::StatusOr<std::unique_ptr<Sampler>> Create(
      const std::string& path, const std::string& live_path,
      std::vector<std::unique_ptr<TelemetrySource>> sources, telemetry::Header header,
      Clocks clocks);

  // Asks all sources where they are due or `is_last`, else the meters alone.
  absl::Status Sample(bool is_last = false);
  absl::Status Flush() { return writer_.Flush(); }

  // Until the next sample: a second, and twice as long after each minute in which the sampling cost
  // more than a thousandth of a core; at most a minute. Meters are asked each second all the same.
  absl::Duration interval() const { return has_meters_ ? kSecond : interval_; }

 private:
  Sampler(telemetry::SeriesWriter writer, LiveFile live,
          std::vector<std::unique_ptr<TelemetrySource>> sources, Clocks clocks);
  void KeepToBudget(int64_t node_ns, int64_t cpu_ns);
  void KeepLive(int64_t node_ns);

  telemetry::SeriesWriter writer_;
  LiveFile live_;
  bool is_live_ = true;  // false: it could not be written
  const std::vector<std::unique_ptr<TelemetrySource>> sources_;
  const Clocks clocks_;
  std::vector<int64_t> values_;
  static constexpr absl::Duration kSecond = absl::Seconds(1);
  absl::Duration interval_ = kSecond;
  const bool has_meters_;
  int64_t all_at_ns_ = 0;  // when all were asked
  bool has_begun_ = false;
  int64_t window_node_ns_ = 0;  // when the minute began that is judged next
  int64_t window_cpu_ns_ = 0;
};

// Does so on a thread of its own until it is destroyed.
class Telemetry {
 public:
  // Of this node and of what descends from this process, to `path`; the first sample is taken when
  // it returns. What cannot be done is logged: a run goes on without.
  // Who else used the node goes to `foreign_path`, what the node does now to `live_path`.
  Telemetry(const std::string& path, const std::string& foreign_path, const std::string& live_path,
            const std::string& boot_id, std::function<int64_t()> node_ns,
            const MeterOptions& meters = {});
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_SAMPLER_H_
