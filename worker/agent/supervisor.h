// Watches the processes of a run on this node from their start to their end: lets in those that a
// launcher starts, records what is witnessed meanwhile, and ends all when one fails, when it is
// told to, or when time is over.

#ifndef WORKER_AGENT_SUPERVISOR_H_
#define WORKER_AGENT_SUPERVISOR_H_

#include <poll.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/exit_code.h"
#include "worker/agent/clock_watch.h"
#include "worker/agent/entrants.h"
#include "worker/agent/log_witness.h"
#include "worker/agent/pause_watch.h"
#include "worker/agent/rank_powers.h"
#include "worker/agent/rank_watch.h"
#include "worker/agent/run_directory.h"
#include "worker/agent/stall_watch.h"
#include "worker/agent/touch_monitor.h"
#include "worker/agent/trainer_group.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {

// A poll that waits for no deadline still wakes up now and then: nothing depends on it.
inline constexpr absl::Duration kPollMax = absl::Minutes(1);
inline constexpr char kStopReason[] = "stopped on request";

// What a supervisor looks at; all of it outlives it, and what may be missing may go missing.
struct Supervised {
  TrainerGroup* group;
  const Workload* workload;
  std::optional<TouchMonitor>* monitor;
  std::optional<LogWitness>* log;
  std::optional<Entrants>* entrants;
  int signal_fd;  // HasStopSignal
  const RunDirectory* directory;
  const Heartbeat* heartbeat;
  const Clock* clock;
};

// Not thread-safe.
class Supervisor {
 public:
  struct Limits {
    absl::Duration run_timeout;
    absl::Duration grace;                // between TERM and KILL
    absl::Duration entry_patience;       // for all of a launcher's processes to come
    std::optional<absl::Duration> init;  // from the arrival of init_start to that of run_start
  };
  explicit Supervisor(const Supervised& parts) : parts_(parts) {}

  // Blocks until all processes have ended, and says how the run has. Errors: the node cannot.
  absl::StatusOr<StepExit> Run(const Limits& limits);

 private:
  bool IsGoingOn() const;
  bool AreEntrantsAwaited() const;
  std::optional<MonoTime> InitDeadline() const;
  bool WaitForSomething();  // true: nothing but the monitor has something
  int PollUntil(absl::Duration left, std::vector<pollfd>* entries);
  absl::Status RecordPauses();
  absl::Status RecordClocks(bool is_final);
  absl::Status RecordStalls();
  absl::Status RecordRanks(const std::vector<std::pair<int, pid_t>>& ranks);
  bool IsToWork() const;
  absl::Status RecordTouch();
  absl::Status RecordReadPast(const Touch& touch) const;
  Touch Completed(Touch touch);
  void RecordArrivals(bool is_final);
  absl::Status LetIn();
  void NoteExits();
  void NoteLoss();
  void Stop(StepExit cause);
  absl::Status EnforceDeadlines();
  StepExit Outcome() const;

  const Supervised parts_;
  Limits limits_;
  MonoTime deadline_;
  MonoTime look_at_;  // at ranks and deadlines, whatever happens to files
  MonoTime entry_deadline_;
  std::optional<MonoTime> lost_at_;  // when the launcher had ended one of its processes
  std::optional<MonoTime> kill_at_;
  std::optional<StepExit> cause_;
  std::vector<Pause> pauses_;
  ClockWatch clock_watch_;
  RankWatch rank_watch_;
  StallWatch stall_watch_{StallWatch::Options()};
  bool has_touched_ = false;  // the dataset
  size_t stall_count_ = 0;    // written down
  RankPowers powers_;
};

// True if the signalfd, which is read, has a signal other than SIGCHLD.
bool HasStopSignal(int signal_fd);

StepExit ExitFor(ExitCode code, absl::string_view reason);
StepExit ExitFor(ExitCode code, const absl::Status& status);

}  // namespace assay::agent

#endif  // WORKER_AGENT_SUPERVISOR_H_
