// The ranks of this node that come in from a launcher: who has come, what was started in his place,
// and who is still waited for.

#ifndef WORKER_AGENT_ENTRANTS_H_
#define WORKER_AGENT_ENTRANTS_H_

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "worker/agent/entrance.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {

// Not thread-safe.
class Entrants {
 public:
  // Starts the rank in whose place the entrant is. INVALID_ARGUMENT: there is none, so that he is
  // refused; every other error is the node's.
  using Starter = std::function<absl::Status(const Entrant& entrant)>;

  Entrants(Entrance entrance, int expected_count, Starter start)
      : entrance_(std::move(entrance)),
        expected_count_(static_cast<size_t>(expected_count)),
        start_(std::move(start)) {}

  std::vector<int> Fds() const { return entrance_.Fds(); }

  // Starts a rank for each who has come. The starter's error if the node cannot.
  absl::Status LetIn();

  // Tells the launcher's processes how the ranks in their place have ended.
  void Answer(const std::vector<RankExit>& exits);

  // True while not all have come.
  bool AreAwaited() const { return entered_.size() < expected_count_; }
  // True if the launcher has ended a process whose rank has not ended.
  bool HasLostOne() const { return entrance_.HasLostOne(); }

 private:
  Entrance entrance_;
  size_t expected_count_;
  Starter start_;
  std::set<int> entered_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_ENTRANTS_H_
