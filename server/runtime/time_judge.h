// How long a run took by other clocks than the one that stamps its log.

#ifndef SERVER_RUNTIME_TIME_JUDGE_H_
#define SERVER_RUNTIME_TIME_JUDGE_H_

#include <optional>
#include <vector>

#include "common/rules/witnessed_time.h"
#include "server/core/types.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

// When the log's records came on rank 0's node. nullopt: it has left none, or what cannot be read.
std::optional<std::vector<rules::Arrival>> ArrivalsOf(const core::Run& run,
                                                      const store::ArtifactStore& artifacts);

// Adds the times by the node's and the coordinator's clock, and warnings where they contradict the
// log or each other.
void JudgeTime(const core::Run& run, const std::vector<rules::Arrival>& arrivals,
               const store::ArtifactStore& artifacts, core::RunFacts* facts);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_TIME_JUDGE_H_
