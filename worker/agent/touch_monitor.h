// Sees the first touch of a dataset from outside the program that touches it: by fanotify where the
// kernel lets us (it names the process), else by inotify (it does not).
//
// Arm before the trainer starts; after the first touch the monitor takes itself away, so that it
// costs the training nothing. Reads through mmap show as opens only: both mechanisms miss the
// pages.

#ifndef WORKER_AGENT_TOUCH_MONITOR_H_
#define WORKER_AGENT_TOUCH_MONITOR_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/file.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

struct TouchMonitorOptions {
  std::vector<std::string> directories;  // watched with all that is below them; they must exist
  bool is_read_only = false;             // true: opening a file does not count, reading it does
  bool is_fanotify_allowed = true;       // false: inotify at once
  // Path, without links, of what leads the session of another run's step; empty: this program.
  std::string step_program;
};

// Not thread-safe. Where the mechanism names the process (fanotify), events caused by this process,
// or by another run on the same node, are ignored.
class TouchMonitor {
 public:
  // Starts to watch. NOT_FOUND if a directory is missing; UNAVAILABLE if the kernel refuses both
  // mechanisms, RESOURCE_EXHAUSTED if it has no watches left. `clock` must outlive the monitor.
  static absl::StatusOr<TouchMonitor> Arm(const TouchMonitorOptions& options, const Clock* clock);

  // Readable when something happened; -1 once the first touch was returned.
  int fd() const { return fd_.get(); }

  // The first touch, if it has happened, stamped as it is read. Does not block. At most one touch
  // is ever returned.
  absl::StatusOr<std::optional<Touch>> Poll();

  absl::string_view mechanism() const { return is_fanotify_ ? "fanotify" : "inotify"; }

 private:
  TouchMonitor(UniqueFd fd, bool is_fanotify, const Clock* clock)
      : fd_(std::move(fd)), is_fanotify_(is_fanotify), clock_(clock) {}
  bool IsOtherRun(pid_t pid) const;
  static absl::StatusOr<TouchMonitor> ArmFanotify(const std::vector<std::string>& directories,
                                                  bool is_read_only, const Clock* clock);
  static absl::StatusOr<TouchMonitor> ArmInotify(const std::vector<std::string>& directories,
                                                 bool is_read_only, const Clock* clock);
  std::optional<Touch> FirstOfFanotify(absl::string_view bytes) const;
  std::optional<Touch> FirstOfInotify(absl::string_view bytes) const;

  UniqueFd fd_;
  bool is_fanotify_;
  const Clock* clock_;
  std::string step_program_;                // fanotify: leads the sessions of other runs
  std::map<int, std::string> directories_;  // inotify: by watch descriptor
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_TOUCH_MONITOR_H_
