// Runs that somebody has stopped on nodes of a batch system. The agents say so first, and know only
// that a signal came; why, the batch system says a moment later. Until then the run is not failed,
// so that it fails with the word that tells: CANCELLED, TIMEOUT, NODE_FAIL.

#ifndef SERVER_CORE_DOUBTS_H_
#define SERVER_CORE_DOUBTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/core/command.h"
#include "server/core/types.h"

namespace assay::core {

// The launcher's word is waited for so long.
inline constexpr int64_t kDoubtUs = 12LL * 1'000'000;

// In memory only: after a start the doubt begins anew. Not thread-safe.
class Doubts {
 public:
  // Looks at the runs that are active now. Returns the allocations that the launcher shall be asked
  // about anew.
  std::vector<AllocationId> Watch(const State& state, const LauncherStarted& launcher,
                                  int64_t now_us);

  // The launcher holds the allocation still: the agents' word is all that there is.
  void Answer(AllocationId allocation);

  // True if the run shall not be failed yet.
  bool Holds(RunId run, int64_t now_us) const;

  // When a doubt ends next, if that is to come.
  std::optional<int64_t> NextEndUs(int64_t now_us) const;

 private:
  struct Doubt {
    AllocationId allocation;
    int64_t end_us = 0;  // of waiting for an answer
  };
  std::map<RunId, Doubt> doubts_;
};

}  // namespace assay::core

#endif  // SERVER_CORE_DOUBTS_H_
