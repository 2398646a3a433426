// Whether a run's first pass over its training data came from storage.

#ifndef SERVER_RUNTIME_BYTES_JUDGE_H_
#define SERVER_RUNTIME_BYTES_JUDGE_H_

#include <optional>

#include "common/rules/run_clocks.h"
#include "common/telemetry/run_phases.h"
#include "server/core/types.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

// Adds R-IOB-001 if it did not, by what all nodes of the run have left; nothing where that is not
// known. `is_demanded`: the round makes it a violation. Reads one node's telemetry at a time.
void JudgeBytes(const core::Run& run, const telemetry::RunPhases& phases, int node_count,
                const std::optional<core::Dataset>& dataset, bool is_demanded,
                const rules::RunClocks& clocks, const store::ArtifactStore& artifacts,
                core::RunFacts* facts);

// Adds R-IOB-002, a violation, if the log declares a cache of the nodes although the round's clock
// runs while data is staged.
void JudgeCache(const telemetry::RunPhases& phases, bool is_staging_timed, core::RunFacts* facts);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_BYTES_JUDGE_H_
