// Agents on the coordinator's own host, as its children: one allocation at a time, whose workers
// are local-0, local-1 ...
//
// Each agent has a directory <data>/agents/<name> with its configuration, its keys and its log, and
// a thread here that starts it, waits for its end, and starts it again after a pause that doubles
// from one try to the next. An agent outlives a coordinator that is killed: the next one finds it
// by its process id file and watches it on.

#ifndef SERVER_LAUNCH_LOCAL_H_
#define SERVER_LAUNCH_LOCAL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/mutex.h"
#include "server/launch/launcher.h"

namespace assay::launch {

// What one agent needs to know to join.
struct LaunchRequest {
  std::string worker;           // its name: local-0
  std::string server_address;   // host:port of the coordinator
  std::string ca_pem;           // by which the agent knows the coordinator
  std::string enrolment_token;  // one use; ignored by an agent that has enrolled before
  std::vector<int32_t> cores;   // processors for its trainers; empty: all
  std::map<std::string, std::string> labels;
};

enum class AgentState {
  kRunning,
  kWaiting,  // it ended by itself; it will be started again
  kStopped,
};

struct AgentInfo {
  std::string worker;
  AgentState state = AgentState::kStopped;
  int64_t pid = 0;            // while running
  int64_t restart_count = 0;  // times that it was started again
  std::string last_end;       // "exit code 3", or why it could not start; empty: never ended
};

struct LocalOptions {
  std::string directory;       // <data>/agents
  std::string worker_program;  // path of assay-worker
  // By which agents join.
  std::string server_address;
  std::string ca_pem;
  std::function<absl::StatusOr<std::string>(const std::string& worker)> make_enrolment_token;
  std::vector<std::vector<int32_t>> cores;  // of each agent; its size is the most that there can be
  absl::Duration pause_min = absl::Seconds(1);
  absl::Duration pause_max = absl::Minutes(1);
  absl::Duration steady_after = absl::Minutes(1);  // an agent that ran this long starts anew at min
  absl::Duration stop_grace = absl::Seconds(10);   // between TERM and KILL
};

// Processors 0..core_count-1 shared out to `worker_count` agents, in runs of neighbours; with
// cores_per_worker > 0 each gets that many. INVALID_ARGUMENT if there are too few.
absl::StatusOr<std::vector<std::vector<int32_t>>> ShareCores(int32_t core_count,
                                                             int32_t worker_count,
                                                             int32_t cores_per_worker);

class LocalLauncher final : public Launcher {
 public:
  explicit LocalLauncher(LocalOptions options);
  // Stops all agents.
  ~LocalLauncher() override;

  // NOT_FOUND if worker_program cannot be run; FAILED_PRECONDITION while another allocation is
  // held.
  absl::StatusOr<std::optional<Grant>> Acquire(const core::Allocation& allocation) override;
  absl::StatusOr<bool> Release(core::AllocationId allocation) override;

  // Sees to it that an agent named request.worker runs. OK also if it runs already.
  absl::Status Start(const LaunchRequest& request);

  // All agents that Start was asked for, by name.
  std::vector<AgentInfo> Describe() const;

  // Stops all agents and what they started, also those of an earlier coordinator.
  void StopAll();

 private:
  class Agent;

  absl::Status CheckCanHold(const core::Allocation& allocation);

  const LocalOptions options_;
  mutable Mutex mutex_;
  core::AllocationId held_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<Agent>> agents_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::launch

#endif  // SERVER_LAUNCH_LOCAL_H_
