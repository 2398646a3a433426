// Why a submission waits, and what would unblock it. Read only.

#ifndef SERVER_CORE_EXPLAIN_H_
#define SERVER_CORE_EXPLAIN_H_

#include "absl/status/statusor.h"

#include "server/core/command.h"
#include "server/core/schedule.h"

namespace assay::core {

// Answers for any state; `now_us` for what is still to come. NOT_FOUND if there never was such a
// submission.
absl::StatusOr<Explanation> Explain(const State& state, const PresenceMap& presence,
                                    const Policy& policy, int64_t now_us, SubmissionId id);

// What runs of `spec` would find.
PlacementReply PlanFor(const State& state, const PresenceMap& presence, const SubmissionSpec& spec);

}  // namespace assay::core

#endif  // SERVER_CORE_EXPLAIN_H_
