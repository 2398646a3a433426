// Why a submission waits, and what would unblock it. Read only.

#ifndef SERVER_CORE_EXPLAIN_H_
#define SERVER_CORE_EXPLAIN_H_

#include <cstdint>

#include "absl/status/statusor.h"

#include "server/core/command.h"
#include "server/core/profile_health.h"
#include "server/core/schedule.h"

namespace assay::core {

// All that an answer draws on.
struct Known {
  const State& state;
  const PresenceMap& presence;
  const Policy& policy;
  const LauncherStarted& launcher;
  const LeaseWaits& waits;
  const ProfileHealth& health;
  int64_t now_us;  // for what is still to come
};

// Answers for any state, without a word of what `viewer` does not see. NOT_FOUND if there never was
// such a submission.
absl::StatusOr<Explanation> Explain(const Known& known, SubmissionId id, const VisibleTo& viewer);

// What runs of `spec` would find; of the queue only what `viewer` sees.
PlacementReply PlanFor(const State& state, const PresenceMap& presence,
                       const LauncherStarted& launcher, const SubmissionSpec& spec,
                       const VisibleTo& viewer);

}  // namespace assay::core

#endif  // SERVER_CORE_EXPLAIN_H_
