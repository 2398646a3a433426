// Agents on the coordinator's own host, as its children.
//
// Each agent has a directory <data>/agents/<name> with its configuration, its keys and its log, and
// a thread here that starts it, waits for its end, and starts it again after a pause that doubles
// from one try to the next. An agent outlives a coordinator that is killed: the next one finds it
// by its process id file and watches it on.

#ifndef SERVER_LAUNCH_LOCAL_H_
#define SERVER_LAUNCH_LOCAL_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/mutex.h"
#include "server/launch/launcher.h"

namespace assay::launch {

struct LocalOptions {
  std::string directory;       // <data>/agents
  std::string worker_program;  // path of assay-worker
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

  absl::Status Start(const LaunchRequest& request) override;
  absl::Status Stop(const std::string& worker) override;
  std::vector<AgentInfo> Describe() const override;

 private:
  class Agent;

  const LocalOptions options_;
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Agent>> agents_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::launch

#endif  // SERVER_LAUNCH_LOCAL_H_
