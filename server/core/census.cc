#include "server/core/census.h"

#include <algorithm>
#include <map>
#include <utility>

#include "server/core/planner.h"

namespace assay::core {

Census CountWorkers(const State& state, const PresenceMap& presence, const SubmissionSpec& spec,
                    SubmissionId submission) {
  std::map<AllocationId, Census> censuses;
  int32_t matching = 0;
  for (const auto& [name, worker] : state.workers) {
    const auto it = state.allocations.find(worker.allocation);
    if (it == state.allocations.end() || !MayUse(it->second, submission) ||
        worker.state == WorkerState::kGone || !Matches(worker, spec))
      continue;
    Census& census = censuses[it->first];
    census.allocation = it->first;
    ++matching;
    ++census.matching;
    if (worker.state == WorkerState::kSuspect || worker.state == WorkerState::kLost) {
      ++census.silent;
      census.silent_since_us = std::max(census.silent_since_us, worker.state_since_us);
    }
    if (worker.state == WorkerState::kDraining) {
      ++census.draining;
      census.drained.push_back(&worker);
    }
    if (IsFree(worker, presence)) ++census.free;
  }
  Census best;
  for (const auto& [id, census] : censuses) {
    if (std::pair(census.usable(), census.matching) > std::pair(best.usable(), best.matching))
      best = census;
  }
  best.elsewhere = matching - best.matching;
  return best;
}

}  // namespace assay::core
