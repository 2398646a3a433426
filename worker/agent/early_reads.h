// What had been read before the first touch, by counters: from storage by the run's own processes,
// and from servers by this node. No privilege is needed. It tells of reads that no watch sees, and
// not of what.

#ifndef WORKER_AGENT_EARLY_READS_H_
#define WORKER_AGENT_EARLY_READS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "common/clock.h"
#include "worker/agent/run_directory.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {

// Not thread-safe.
class EarlyReads {
 public:
  static constexpr absl::Duration kBudget = absl::Milliseconds(30);  // the log's stamps wait

  struct Options {
    std::string proc = "/proc";
    std::string sys = "/sys";
    std::vector<std::string> roots;  // of the dataset: files mapped from there explain nothing
    int64_t dataset_bytes = 0;       // 0: not known
  };
  // Servers' counters begin to count here. To be made before the run's processes start.
  explicit EarlyReads(Options options);

  // `processes`: those of the run that live; what has ended below one counts as its own.
  RunReads Now(const std::vector<pid_t>& processes, const Clock& clock);

  // W-DEVICE, where more had been read than 8 MiB, and than a thousandth of the dataset, that
  // nothing explains.
  std::optional<WitnessHole> HoleOf(const RunReads& reads) const;

 private:
  std::optional<int64_t> ServerBytes();

  Options options_;
  std::unique_ptr<TelemetrySource> servers_;
  std::optional<int64_t> servers_begin_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_EARLY_READS_H_
