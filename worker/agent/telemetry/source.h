// Where a node's telemetry comes from. One source is one file of this folder and one row of the
// table in sources.cc.

#ifndef WORKER_AGENT_TELEMETRY_SOURCE_H_
#define WORKER_AGENT_TELEMETRY_SOURCE_H_

#include <sys/timex.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/telemetry/series.h"

namespace assay::agent {

// Not thread-safe. A source keeps open what it reads, so a process may give its rights up once it
// has made it.
class TelemetrySource {
 public:
  virtual ~TelemetrySource() = default;

  // The same as long as it lives; none: this node has nothing of the kind.
  virtual const std::vector<telemetry::Column>& columns() const = 0;

  // Whether a power entry may come of it: then it is asked every second, whatever the rest costs.
  virtual bool is_meter() const { return false; }

  // Reads now. `values` has one for each column, all kMissing; what cannot be read stays so.
  virtual void Sample(std::span<int64_t> values) = 0;
};

struct SourceOptions {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string nvml_library{};      // of NVIDIA's driver; empty: GPUs are not asked
  int64_t ticks_per_second = 100;  // of the kernel's counts of processor time
  // By which meters tell whether a counter can have moved so far.
  std::function<int64_t()> now_ns = [] {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  };
  // Those of the run, and who started them; null: nobody asks.
  std::function<std::vector<pid_t>()> processes{};
  // adjtimex, changing nothing; null: nobody asks.
  std::function<int(timex*)> steering{};
};

// One of each kind that has something to say on this node.
std::vector<std::unique_ptr<TelemetrySource>> MakeSources(const SourceOptions& options);

std::unique_ptr<TelemetrySource> MakeCpuSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakePressureSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeMemorySource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeDiskSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeServerSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeNetworkSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeInfinibandSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeFrequencySource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeRaplSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeCraySource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeHwmonSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeNvmlSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeClockSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeRunSource(const SourceOptions& options);

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_SOURCE_H_
