// Runs that somebody has stopped on nodes of a batch system. The agents say so first, and know only
// that a signal came; why, the batch system says a moment later. Until then the run is not failed,
// so that it fails with the word that tells: CANCELLED, TIMEOUT, NODE_FAIL. A job that is preempted
// runs on for the batch system until its agents have left.

#ifndef SERVER_CORE_DOUBTS_H_
#define SERVER_CORE_DOUBTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "server/core/command.h"
#include "server/core/types.h"

namespace assay::core {

// The launcher's word is waited for so long.
inline constexpr int64_t kDoubtUs = 12LL * 1'000'000;
// That it holds the allocation still counts after so long only; until then it is asked each second.
inline constexpr int64_t kDoubtMinUs = 5LL * 1'000'000;
inline constexpr int64_t kAskAgainUs = 1LL * 1'000'000;

// In memory only: after a start the doubt begins anew. Not thread-safe.
class Doubts {
 public:
  // Looks at the runs that are active now. Returns the allocations that the launcher shall be asked
  // about anew.
  std::vector<AllocationId> Watch(const State& state, const LauncherStarted& launcher,
                                  int64_t now_us);

  // The launcher holds the allocation still: the agents' word is all that there is, unless one of
  // them has left or the run was stopped a moment ago. Then the launcher is asked again.
  void Answer(const State& state, AllocationId allocation, int64_t now_us);

  // True if the run shall not be failed yet.
  bool Holds(RunId run, int64_t now_us) const;

  // The allocations about which the launcher's word is waited for.
  std::set<AllocationId> Open(int64_t now_us) const;

  // When a doubt ends next, or the launcher is to be asked, if that is to come.
  std::optional<int64_t> NextEndUs(int64_t now_us) const;

 private:
  struct Doubt {
    AllocationId allocation;
    int64_t end_us = 0;        // of waiting for an answer
    int64_t ask_again_us = 0;  // 0: the launcher is asked
  };
  std::map<RunId, Doubt> doubts_;
};

}  // namespace assay::core

#endif  // SERVER_CORE_DOUBTS_H_
