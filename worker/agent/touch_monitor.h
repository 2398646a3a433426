// Sees the first touch of a dataset from outside the program that touches it: by fanotify where the
// kernel lets us, or a privileged helper does it for us (it names the process), else by inotify (it
// does not). Our own fanotify watches file systems and sees the dataset's files under any name;
// that of a helper, of kernels and file systems that allow no more, and inotify watch its folders.
//
// A touch is attributed if the process that made it is known to descend from this one: only such a
// touch can accuse a run. Whatever else is seen is observed: it may confirm what a log says.
//
// Arm before the trainer starts; after the first touch of the run the monitor takes itself away, so
// that it costs the training nothing. Reads through mmap show as opens only: both mechanisms miss
// the pages.

#ifndef WORKER_AGENT_TOUCH_MONITOR_H_
#define WORKER_AGENT_TOUCH_MONITOR_H_

#include <sys/types.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"
#include "worker/agent/access_times.h"
#include "worker/agent/early_reads.h"
#include "worker/agent/file_system_watch.h"
#include "worker/agent/reader_gate.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

struct TouchMonitorOptions {
  std::vector<std::string> directories;  // watched with all that is below them; they must exist
  bool is_read_only = false;             // fanotify: opening a file does not count, reading it does
  bool is_fanotify_allowed = true;       // false: inotify at once
  // Of a privileged helper that opens fanotify where this process may not; empty: none is asked.
  std::string helper_socket{};
  // Where inodes are dropped that watching has loaded; empty: they stay.
  std::string drop_caches_path{};
  int64_t dataset_bytes = 0;  // about so many, 0: not known; early_reads.h
};

// Not thread-safe. Where the mechanism names the process (fanotify), events caused by this process,
// or by another run on the same node (other_runs.h), are ignored. Where it does not, opens are: an
// agent that resets the caches for another run opens every file and reads none.
class TouchMonitor {
 public:
  // Starts to watch. NOT_FOUND if a directory is missing; UNAVAILABLE if the kernel refuses both
  // mechanisms, RESOURCE_EXHAUSTED if it has no watches left. `clock` must outlive the monitor.
  static absl::StatusOr<TouchMonitor> Arm(const TouchMonitorOptions& options, const Clock* clock);

  // From now on readers of the run are held by it; an error says why they are not.
  void SetGate(absl::StatusOr<ReaderGate> gate);
  // Readable when the gate has something to say; -1: there is none, or not any more.
  int gate_fd() const { return gate_.has_value() ? gate_->fd() : -1; }
  // Hears what it has to say. To be called while there is one, at least every
  // ReaderGate::kSilenceMax: readers wait for one that has been stopped until then.
  void LookAtGate();

  // Readable when something happened; -1 once there is nothing more to see.
  int fd() const { return fd_.get(); }

  // Takes in what has happened, which else waits in the kernel's memory: of a busy file system that
  // may be much. Does not block. To be called every kLookInterval also when nothing seems to
  // happen: a touch came after the time when nothing was there, which bounds its stamp.
  absl::Status Look();
  static constexpr absl::Duration kLookInterval = absl::Milliseconds(5);
  bool has_touch() const { return !waiting_.empty(); }

  // The next touch worth keeping, stamped as it is read, with the bound of its stamp: the first
  // that is only observed, and the first that is attributed, after which there is none. Does not
  // block.
  absl::StatusOr<std::optional<Touch>> Poll();

  absl::string_view mechanism() const { return is_fanotify_ ? "fanotify" : "inotify"; }
  // What is watched: whole file systems, or the dataset's folders.
  absl::string_view watched() const { return files_.has_value() ? "file system" : "folders"; }

 private:
  TouchMonitor(UniqueFd fd, bool is_fanotify, const Clock* clock)
      : fd_(std::move(fd)), is_fanotify_(is_fanotify), clock_(clock), empty_at_(clock->Mono()) {}
  bool IsOtherRun(pid_t pid) const;
  bool IsGate(pid_t pid) const;
  bool WasHeld(pid_t pid);
  std::optional<std::string> PathOf(absl::string_view event, int file) const;
  static absl::StatusOr<TouchMonitor> ArmBest(const TouchMonitorOptions& options,
                                              const Clock* clock, std::string* why_folders);
  static absl::StatusOr<TouchMonitor> ArmInotify(const std::vector<std::string>& directories,
                                                 const Clock* clock);
  void TakeFanotify(absl::string_view bytes, const Stamp& stamp);
  void TakeInotify(absl::string_view bytes, const Stamp& stamp);
  void Take(Touch touch);
  void Complete(Touch* touch);
  void CountReads(Touch* touch);
  std::vector<pid_t> RunProcesses() const;
  void NoteOverflow();

  UniqueFd fd_;
  bool is_fanotify_;
  const Clock* clock_;
  MonoTime empty_at_;        // when no event was waiting, last
  uid_t agent_ = geteuid();  // whose account this process has while it arms: the agent's
  std::map<int, std::string> directories_;  // inotify: by watch descriptor
  std::optional<FileSystemWatch> files_;    // fanotify of file systems
  bool is_read_only_ = false;
  std::optional<EarlyReads> early_reads_;    // of the dataset, not of copies: the run makes those
  std::optional<AccessTimes> access_times_;  // where files are known by their folders' names alone
  std::optional<ReaderGate> gate_;
  std::string why_no_gate_ = "none was closed";
  std::vector<WitnessHole> holes_;  // but those of the gate
  bool has_observed_ = false;
  std::vector<Touch> waiting_;  // seen, and not yet returned; at most one of each strength
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_TOUCH_MONITOR_H_
