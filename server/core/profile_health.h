// Profiles of a launcher whose allocations end before any run has used them: a partition that is
// broken, an account without credit. After three in a row the scheduler asks for one an hour.

#ifndef SERVER_CORE_PROFILE_HEALTH_H_
#define SERVER_CORE_PROFILE_HEALTH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "server/core/event.h"
#include "server/core/types.h"

namespace assay::core {

inline constexpr int32_t kProfileFailureCountMax = 3;
inline constexpr int64_t kProfilePauseUs = 3600LL * 1'000'000;

// In memory only: after a start it is tried anew. Not thread-safe.
class ProfileHealth {
 public:
  struct Failures {
    int32_t count = 0;  // in a row
    AllocationId last;
    std::string reason;  // of that
    int64_t last_at_us = 0;
  };

  // `record` has been applied to `state`.
  void Note(const RecordedEvent& record, const State& state);

  // Why nothing is asked of the profile now; nullptr: it may be.
  const Failures* FindPause(const std::string& profile, int64_t now_us) const;

  // True if it has failed so often that only one allocation at a time may be asked for.
  bool IsOnTrial(const std::string& profile) const;

  // When the next pause ends, if there is one.
  std::optional<int64_t> NextEndUs(int64_t now_us) const;

 private:
  std::map<std::string, Failures> failures_;  // by profile
};

}  // namespace assay::core

#endif  // SERVER_CORE_PROFILE_HEALTH_H_
