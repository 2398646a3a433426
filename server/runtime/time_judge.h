// Whether a run's log was stamped when it was written, and how long the run took by other clocks.

#ifndef SERVER_RUNTIME_TIME_JUDGE_H_
#define SERVER_RUNTIME_TIME_JUDGE_H_

#include <optional>
#include <vector>

#include "common/rules/arrivals.h"
#include "server/core/types.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

// When the log's records came on rank 0's node. nullopt: it has left none, or what cannot be read.
std::optional<std::vector<rules::Arrival>> ArrivalsOf(const core::Run& run,
                                                      const store::ArtifactStore& artifacts);

// Compares the stamps of the log with when its records came; adds errors and warnings.
//   logged: what times the run, in the log that is judged
void JudgeStamps(const std::vector<rules::Arrival>& arrivals,
                 const std::vector<rules::TimedRecord>& logged, core::RunFacts* facts);

// Adds the times by the node's and the coordinator's clock, and warnings where they contradict the
// log or each other.
void JudgeTime(const core::Run& run, const std::vector<rules::Arrival>& arrivals,
               const store::ArtifactStore& artifacts, core::RunFacts* facts);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_TIME_JUDGE_H_
