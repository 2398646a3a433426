// What the world must be told after a commit. Every effect may be repeated without harm, and all
// that is outstanding can be derived from State: nothing is in flight in memory alone.

#ifndef SERVER_CORE_EFFECT_H_
#define SERVER_CORE_EFFECT_H_

#include <cstdint>
#include <map>
#include <string>
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

// Queued runs need more workers than exist; answered by LaunchFinished. A launcher that has started
// its agents already does nothing.
struct LaunchAgents {
  int32_t worker_count = 0;  // missing
  std::map<std::string, std::string> labels;
  bool operator==(const LaunchAgents&) const = default;
};

using Effect = std::variant<CheckLog, ScoreSubmission, LaunchAgents>;

}  // namespace assay::core

#endif  // SERVER_CORE_EFFECT_H_
