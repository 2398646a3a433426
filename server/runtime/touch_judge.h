// Whether the first touch of a run's data was witnessed as well as its round demands.

#ifndef SERVER_RUNTIME_TOUCH_JUDGE_H_
#define SERVER_RUNTIME_TOUCH_JUDGE_H_

#include "common/rules/ruleset.h"
#include "common/rules/run_clocks.h"
#include "server/core/types.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

// `run` with the first touches of its nodes carried over to the clock of node 0 by what both
// measured of the coordinator's clock around them; of nodes of which `clocks` do not know that, by
// their offsets when the run began, as before.
core::Run WithCarriedTouches(core::Run run, const rules::RunClocks& clocks,
                             const store::ArtifactStore& artifacts);

// Of a run whose touches were carried over. Writes down in `facts` when the first touch was after
// run_start and by how much that may be off (not known where a node's agent did not say it), how
// well its weakest node saw it, and what could have been before it on any of them. Where that is
// less than `demanded` it adds R-TIM-008, with the first node that falls short, and makes the run
// non-compliant. Of `node_count` nodes each has left touch_N.json, or it has seen none.
void JudgeTouches(const core::Run& run, int node_count, rules::Assurance demanded,
                  const store::ArtifactStore& artifacts, core::RunFacts* facts);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_TOUCH_JUDGE_H_
