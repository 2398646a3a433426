// What the agent decides: a pure step from (state, input) to (state, actions).
//
// Level-triggered on both sides. The agent says what it does; the coordinator says what it should
// be doing; any message may be lost or repeated. The machine keeps these promises, whatever the
// order of its inputs:
//   - at most one step executes at a time;
//   - a generation of a run is started at most once, and never after a newer one (fencing token);
//   - a run is reported FINISHED only when its step has ended, every event of it is durable at the
//     coordinator, and every artifact is uploaded;
//   - no step starts while the node is checked;
//   - the node cache is worked on only while there is no run and no check;
//   - files of a run are deleted only when the coordinator says FORGET.
//
// No gRPC, no proto, no files, no clock: the simulator runs the same code as the agent.

#ifndef WORKER_AGENT_MACHINE_H_
#define WORKER_AGENT_MACHINE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace assay::agent {

// One assignment of a run to this worker.
struct RunKey {
  std::string run;         // runs/r-901
  int64_t generation = 0;  // fencing token
  auto operator<=>(const RunKey&) const = default;
};

struct StepExit {
  int code = 0;        // common/exit_code.h, or 128 + signal
  std::string reason;  // one sentence
  bool operator==(const StepExit&) const = default;
};

struct UploadedFile {
  std::string file_name;
  std::string sha256;
  int64_t size_bytes = 0;
  bool operator==(const UploadedFile&) const = default;
};

enum class Order { kIdle, kExecute, kStop, kForget, kCheck };

// What the coordinator wants. `spec` is opaque here; it comes back in StartStep or StartCheck.
struct Desired {
  Order order = Order::kIdle;
  RunKey key;              // all but kIdle; kCheck: without a run, the generation is the number
  std::string spec;        // kExecute, kCheck
  bool may_start = false;  // kExecute. As in DesiredState
  // What is to be done in the node cache, beside the order; 0: nothing. Opaque here.
  int64_t cache_order = 0;
  std::string cache_spec;
};

enum class Phase { kIdle, kExecuting, kFinished };

// What the agent reports.
struct Status {
  Phase phase = Phase::kIdle;
  RunKey key;                           // unless kIdle
  StepExit exit;                        // kFinished
  std::vector<UploadedFile> artifacts;  // kFinished
  bool is_ready = false;                // kExecuting. The step waits for leave to start its ranks
  bool has_leave_to_start = false;      // kExecuting. It has that, or will
  // The pre-flight of this node that was asked for last; 0: none. Its result is opaque here.
  int64_t check = 0;
  std::optional<std::string> check_result;  // it is done
  // The order for the node cache that was given last, 0: none; and what is said of it and of the
  // cache, which is opaque here and may be empty. None: the cache has not been looked at.
  int64_t cache_order = 0;
  bool is_cache_done = false;
  std::optional<std::string> cache_report;
  bool is_leaving = false;
  bool operator==(const Status&) const = default;
};

// ------------------------------------------------------------------------------------- inputs

// Time has passed: whatever may have been lost is asked for again.
struct Tick {};
// The coordinator answered a Synchronize. `call` is the driver's number of it, and only the
// driver's.
struct SyncReply {
  Desired desired;
  int64_t call = 0;
};
// A Synchronize got no answer. The driver waits (back-off) before it gives this; it also gives it
// once at the start, which makes the first Synchronize.
struct SyncFailed {
  int64_t call = 0;
};
// What a run's directory says now. Repeats are fine; nothing ever goes backwards.
struct RunObserved {
  RunKey key;
  bool is_started = false;             // the step has left its mark on disk
  int64_t spooled_seq = 0;             // last event that is durable in the spool
  std::optional<StepExit> exit;        // the step has ended
  bool is_spool_complete = false;      // no event will follow spooled_seq; needs `exit`
  std::vector<std::string> artifacts;  // names to upload; needs `exit`
  bool is_stopping = false;            // the step ends its ranks, or was told to
  bool is_ready = false;               // all is done that comes before the ranks' start
};
// The coordinator has stored all events up to `durable_seq`.
struct EventsAcked {
  RunKey key;
  int64_t durable_seq = 0;
};
struct ArtifactUploaded {
  RunKey key;
  UploadedFile file;
};
// The coordinator will never take more from this run (it does not know it, for example).
struct DeliveryRefused {
  RunKey key;
};
// The pre-flight of that number is done.
struct CheckEnded {
  int64_t number = 0;
  std::string result;
};
// What there is to say of the node cache, and whether the order of that number has ended.
struct CacheSeen {
  int64_t number = 0;  // 0: of none
  bool is_done = false;
  std::string report;
};
// The agent was asked to end. A running step is left alone; see IsEnding.
struct LeaveRequested {};

using Input = std::variant<Tick, SyncReply, SyncFailed, RunObserved, EventsAcked, ArtifactUploaded,
                           DeliveryRefused, CheckEnded, CacheSeen, LeaveRequested>;

// ------------------------------------------------------------------------------------- actions
// All are idempotent: the driver may be told the same thing twice.

// Make the run's directory, then start its step. The step itself refuses to start a second time. If
// it cannot be started, RunObserved follows with an exit.
struct StartStep {
  RunKey key;
  std::string spec;
};
// Ask the step to stop its trainers; it then exits by itself. RunObserved follows with an exit,
// also if the step was never started.
struct StopStep {
  RunKey key;
};
// Let the step start its ranks, which waits for the other instances of its throughput set.
struct GiveLeave {
  RunKey key;
};
// Begin the pre-flight, which CheckEnded ends; one that goes on is ended first.
struct StartCheck {
  int64_t number = 0;
  std::string spec;
};
// End the pre-flight that goes on: nobody waits for it.
struct StopCheck {};
// Begin or continue what is to be done in the node cache, which CacheSeen ends.
struct StartCaching {
  int64_t number = 0;
  std::string spec;
};
// End the process that works on the node cache, before anything else. It may be continued later.
struct StopCaching {};
// Call Synchronize with `status`; a call under way with another status is given up.
struct Synchronize {
  Status status;
};
// Events first_seq..last_seq of the spool are to be delivered.
struct SendEvents {
  RunKey key;
  int64_t first_seq = 1;
  int64_t last_seq = 0;
};
struct UploadArtifacts {
  RunKey key;
  std::vector<std::string> file_names;
};
// Delete the run's files and remember its generation as used.
struct ForgetRun {
  RunKey key;
};

using Action = std::variant<StartStep, StopStep, GiveLeave, StartCheck, StopCheck, StartCaching,
                            StopCaching, Synchronize, SendEvents, UploadArtifacts, ForgetRun>;

// --------------------------------------------------------------------------------------- state

// A run of which this worker holds files.
struct HeldRun {
  bool is_started = false;          // the step has left its mark on disk
  bool is_stopping = false;         // the step ends its ranks, or was told to
  bool is_stop_wanted = false;      // sticky: a step that was told to stop is never wanted again
  bool is_forget_wanted = false;    // FORGET came while the step still ran
  bool is_spool_complete = false;   //
  bool is_refused = false;          // the coordinator takes no more of it
  bool is_ready = false;            // as RunObserved
  bool has_leave_to_start = false;  // the coordinator has given it
  int64_t spooled_seq = 0;
  int64_t acked_seq = 0;
  std::optional<StepExit> exit;
  std::vector<std::string> artifacts;            // to upload
  std::map<std::string, UploadedFile> uploaded;  // by name
};

struct MachineState {
  std::map<RunKey, HeldRun> runs;
  std::map<std::string, int64_t> fences;  // run -> highest generation ever held here
  int64_t check = 0;                      // as in Status
  std::optional<std::string> check_result;
  int64_t cache_order = 0;  // as in Status
  bool is_cache_done = false;
  std::optional<std::string> cache_report;
  bool is_caching = false;  // a process is at it
  bool is_leaving = false;
  Status reported;  // of the last Synchronize action
};

// The state after a restart: `runs` and `fences` as found on disk. Runs whose step never left its
// mark are kept and started only if the coordinator still wants them.
MachineState Restore(std::map<RunKey, HeldRun> runs, std::map<std::string, int64_t> fences);

// What the agent reports in `state`.
Status StatusOf(const MachineState& state);

// True while a step runs that nobody has told to stop.
bool IsExecuting(const MachineState& state);

// True while a run is about to end, or has ended, and the coordinator has not all of it: somebody
// who is to leave should wait for it.
bool IsEnding(const MachineState& state);

// Takes one input, changes `state` and returns what is to be done, in order.
std::vector<Action> Advance(const Input& input, MachineState* state);

}  // namespace assay::agent

#endif  // WORKER_AGENT_MACHINE_H_
