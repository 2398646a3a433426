// Where a node's telemetry comes from. One source is one file of this folder and one row of the
// table in sources.cc.

#ifndef WORKER_AGENT_TELEMETRY_SOURCE_H_
#define WORKER_AGENT_TELEMETRY_SOURCE_H_

#include <sys/timex.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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

// That of a kind that this node does not have.
class NoSource final : public TelemetrySource {
 public:
  const std::vector<telemetry::Column>& columns() const override { return columns_; }
  void Sample(std::span<int64_t> /*values*/) override {}

 private:
  const std::vector<telemetry::Column> columns_{};
};

// A resource of the controller of the node's board (WorkerConfig.redfish_meter).
struct RedfishOptions {
  std::string url;
  std::string credentials_path;
  std::string ca_certificate_path{};  // empty: whom the system trusts
  std::chrono::milliseconds timeout{3000};
};

// A power distribution unit that feeds the node (WorkerConfig.snmp_meters).
struct SnmpOptions {
  std::string address;  // host or host:port
  std::vector<std::string> power_oids;
  double watts_per_unit = 1;
  std::string credentials_path;
  std::chrono::milliseconds timeout{3000};
};

// Of a run that is in a job of Slurm.
struct SlurmOptions {
  std::string node;  // as Slurm names it
  // What `scontrol show` says with these arguments; empty if it cannot be asked. Called in a
  // thread.
  std::function<std::string(const std::vector<std::string>&)> show;
};

// What is known of the node's meters, by the operator's configuration most of it.
struct MeterOptions {
  std::map<std::string, std::string> comparisons{};  // by meter, with what it was compared
  std::optional<RedfishOptions> redfish{};
  std::vector<SnmpOptions> snmp{};  // together one meter
  std::optional<SlurmOptions> slurm{};
};

struct SourceOptions {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string nvml_library{};  // of NVIDIA's driver; empty: GPUs are not asked
  MeterOptions meters{};
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
std::unique_ptr<TelemetrySource> MakeRedfishSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeSnmpSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeSlurmSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeClockSource(const SourceOptions& options);
std::unique_ptr<TelemetrySource> MakeRunSource(const SourceOptions& options);

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_SOURCE_H_
