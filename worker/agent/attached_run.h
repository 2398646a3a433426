// A run of which this node holds files: its directory, its recorder, and the step process, whether
// this agent started it or found it.

#ifndef WORKER_AGENT_ATTACHED_RUN_H_
#define WORKER_AGENT_ATTACHED_RUN_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/node_clock.h"
#include "common/process.h"
#include "worker/agent/machine.h"
#include "worker/agent/run_directory.h"
#include "worker/agent/run_recorder.h"

namespace assay::agent {

// Not thread-safe.
class AttachedRun {
 public:
  // Attaches to a directory that PrepareRun has made, now or in an earlier life of the agent. What
  // cannot be opened is logged; the run then yields no events, but still its end. `clock` must
  // outlive the run.
  AttachedRun(RunDirectory directory, RunKey key, const Clock* clock);

  const RunDirectory& directory() const { return directory_; }
  RunRecorder* recorder() const { return recorder_.get(); }  // null if it could not be opened

  // Starts the step, unless one has begun. An error becomes the run's exit. `listener_fd`: as
  // StartStepProcess. Where the source of the run's program is still on its way, it waits: then it
  // is to be called again.
  void Start(const std::string& program, int listener_fd);
  // True while Start waits for the source (SourceFetcher brings it).
  bool IsWaitingForSource() const { return is_waiting_; }
  // Asks the step to stop; one that has not begun never will.
  void Stop();
  // Looks whether the step was told to stop by somebody else; the next Observe says so. Only for a
  // step that has not come to look itself.
  void LookForStop();
  // Looks at the directory and the process, and returns what the machine is to be told.
  RunObserved Observe();

  // Writes down how the node's clocks stand, until the run has ended.
  void Keep(const ClockSample& sample);

  // Readable when the step has ended; -1 while no step is known.
  int exit_fd() const { return exit_fd_.get(); }
  bool has_ended() const { return exit_.has_value(); }
  // When Observe is to be called at the latest; nullopt: when something happens.
  std::optional<MonoTime> due() const;

  // True for files of the directory whose change is worth an Observe.
  static bool IsWatched(absl::string_view file_name);

 private:
  void Watch(const ProcessId& step);
  void FindExit();
  void End(const absl::Status& cause);
  absl::StatusOr<bool> HasSource() const;

  const RunDirectory directory_;
  const RunKey key_;
  const Clock* const clock_;
  std::unique_ptr<RunRecorder> recorder_;
  std::optional<ProcessId> step_;
  UniqueFd exit_fd_;
  std::optional<StepExit> exit_;
  bool is_stopping_ = false;
  bool is_waiting_ = false;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_ATTACHED_RUN_H_
