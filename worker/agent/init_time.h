// How long a program initialises, by when its records arrive on the node.

#ifndef WORKER_AGENT_INIT_TIME_H_
#define WORKER_AGENT_INIT_TIME_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

// From the first init_start to run_start. What is staged in between does not count: where staging
// is on the clock, run_start comes before it. Not thread-safe.
class InitTime {
 public:
  // The next record of the log; one of another key changes nothing.
  void Take(absl::string_view key, const Stamp& arrival);

  // When it began; nullopt before the first init_start and once run_start has come.
  std::optional<absl::Time> Begin() const;

  // When it will have taken `limit`; nullopt also while something is being staged.
  std::optional<MonoTime> EndOf(absl::Duration limit) const;

 private:
  std::optional<Stamp> begin_;
  std::optional<int64_t> staging_ns_;  // by the monotonic clock, while staging goes on
  absl::Duration staged_;
  bool is_over_ = false;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_INIT_TIME_H_
