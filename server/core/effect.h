// What the world must be told after a commit. Every effect may be repeated without harm, and all
// that is outstanding can be derived from State: nothing is in flight in memory alone.

#ifndef SERVER_CORE_EFFECT_H_
#define SERVER_CORE_EFFECT_H_

#include <cstdint>
#include <variant>

#include "server/core/types.h"

namespace assay::core {

// Judge the log of a run that is UPLOADING; answered by LogChecked.
struct CheckLog {
  RunId run;
  bool operator==(const CheckLog&) const = default;
};

// Judge a submission that is CHECKING; answered by SetScored.
struct ScoreSubmission {
  SubmissionId submission;
  bool operator==(const ScoreSubmission&) const = default;
};

// See to it that the allocation's nodes run agents; answered by LaunchReported, at once or when the
// nodes come. A launcher that holds them already says so. Asked again after each start.
struct AcquireNodes {
  Allocation allocation;
  bool operator==(const AcquireNodes&) const = default;
};

// Stop the agents of the allocation and give its nodes back, whatever they do; answered by
// LaunchReported.
struct ReleaseNodes {
  AllocationId allocation;
  bool operator==(const ReleaseNodes&) const = default;
};

using Effect = std::variant<CheckLog, ScoreSubmission, AcquireNodes, ReleaseNodes>;

}  // namespace assay::core

#endif  // SERVER_CORE_EFFECT_H_
