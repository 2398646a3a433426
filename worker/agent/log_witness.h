// Sees when the records of a program's log arrive on the node, whatever stamps they bear, also
// while no agent is there to see it.

#ifndef WORKER_AGENT_LOG_WITNESS_H_
#define WORKER_AGENT_LOG_WITNESS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/rules/arrivals.h"
#include "worker/agent/init_time.h"
#include "worker/agent/log_tail.h"

namespace assay::agent {

// Writes a line (common/rules/arrivals.h) for each record that times the run as it comes, and for
// others that are stamped wrongly. All that is needed later is open from the beginning, so that the
// step may give its rights up. Not thread-safe.
class LogWitness {
 public:
  // Begins behind what the log at `log_path`, which must exist, holds already, and appends to
  // `record_path`. With a `printed_path` records are looked for there, and appended to the log as
  // they come, byte for byte. The errno's code if one of them cannot be used. `clock` must outlive
  // it.
  static absl::StatusOr<LogWitness> Arm(const std::string& log_path,
                                        const std::string& printed_path,
                                        const std::string& record_path, const Clock* clock);

  // Readable when the log may have grown.
  int fd() const { return watch_.get(); }

  // The watching thread is about to wait for fd(). What comes from now on it is late for only by
  // what keeps it from waking up.
  void Wait();

  // Stamps what has come, with how late it may be seen. With `is_final` nothing will follow: a line
  // without an end counts. DATA_LOSS if the log has become shorter.
  //   stall_ns: for how long nothing on this node was watched a moment ago
  absl::Status Observe(bool is_final, int64_t stall_ns = 0);

  // How many records have come, and how long after their stamps at least and at most: a line for
  // the step's log.
  std::string Summary() const;

  // By what has been observed.
  const InitTime& init() const { return init_; }

 private:
  LogWitness(LogTail log, UniqueFd watch, UniqueFd record, const Clock* clock)
      : log_(std::move(log)), watch_(std::move(watch)), record_(std::move(record)), clock_(clock) {}

  absl::Status Look(bool is_final, int64_t stall_ns);
  absl::Status Keep(const rules::Arrival& arrival);
  absl::Status CopyPrinted(bool is_final);
  int64_t LateNs(int64_t now_ns, int64_t stall_ns) const;

  LogTail log_;
  std::optional<LogTail> printed_;
  UniqueFd copy_;  // the log, to append what was printed
  UniqueFd watch_;
  UniqueFd record_;
  const Clock* clock_;
  InitTime init_;
  size_t timing_count_ =
      0;  // arrivals that were written down, as rules::Arrival distinguishes them
  size_t stray_count_ = 0;
  int64_t record_count_ = 0;  // of all, with how long after their stamps they came
  int64_t least_us_ = std::numeric_limits<int64_t>::max();
  int64_t greatest_us_ = std::numeric_limits<int64_t>::min();
  int64_t looked_ns_ = 0;  // when the log was looked at last, by CLOCK_MONOTONIC
  int64_t wait_ns_ = 0;    // when the thread began to wait since; 0: it has not
  int64_t delay_ns_ = 0;   // how long it had waited for a processor by then
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_LOG_WITNESS_H_
