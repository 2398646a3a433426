// What the nodes of a run saw that its log cannot show.

#ifndef SERVER_RUNTIME_NODE_JUDGE_H_
#define SERVER_RUNTIME_NODE_JUDGE_H_

#include <cstdint>
#include <vector>

#include "server/core/types.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

constexpr int32_t kNodeFindingsMax = 1000;  // of a run; further ones are not looked at

// Adds what of `seen`, the findings of a run, its nodes saw: warnings, by which no run fails. But
// where `is_cold_demanded` the round makes data that was in memory when the clock started, or after
// the reset of caches, a violation (R-TIM-004, R-TIM-005, R-TIM-007).
void JudgeNodes(const std::vector<core::Finding>& seen, bool is_cold_demanded,
                core::RunFacts* facts);

// Adds R-IOB-003, a warning, if the round's clock runs while data is staged and the dataset lay on
// local storage of more than one machine: there it had been copied before, off the clock. Nothing
// where that is not known.
void JudgePlace(const core::Run& run, int node_count, bool is_staging_timed,
                const store::ArtifactStore& artifacts, core::RunFacts* facts);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_NODE_JUDGE_H_
