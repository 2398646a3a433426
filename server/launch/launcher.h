// How agents come to run on nodes. One implementation per way: attach (an operator starts them),
// local (children of the coordinator on its own host). A batch system would be a third: Start
// submits a job that runs assay-worker with the same request.

#ifndef SERVER_LAUNCH_LAUNCHER_H_
#define SERVER_LAUNCH_LAUNCHER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace assay::launch {

// What one agent needs to know to join.
struct LaunchRequest {
  std::string worker;           // its name: w0
  std::string server_address;   // host:port of the coordinator
  std::string ca_pem;           // by which the agent knows the coordinator
  std::string enrolment_token;  // one use; ignored by an agent that has enrolled before
  std::vector<int32_t> cores;   // processors for its trainers; empty: all
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

// Thread-safe. Calls may block on disk and on child processes: not for reactions.
class Launcher {
 public:
  virtual ~Launcher() = default;

  // Sees to it that an agent named request.worker runs. OK also if it runs already.
  // FAILED_PRECONDITION if this launcher starts none.
  virtual absl::Status Start(const LaunchRequest& request) = 0;

  // Stops an agent and what it started. OK also if there is none of that name.
  virtual absl::Status Stop(const std::string& worker) = 0;

  // All agents that Start was asked for, by name.
  virtual std::vector<AgentInfo> Describe() const = 0;
};

}  // namespace assay::launch

#endif  // SERVER_LAUNCH_LAUNCHER_H_
