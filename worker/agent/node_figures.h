// What the agent tells of its node while a run is on it.

#ifndef WORKER_AGENT_NODE_FIGURES_H_
#define WORKER_AGENT_NODE_FIGURES_H_

#include <cstdint>
#include <optional>

#include "assay/v1/resources.pb.h"

#include "worker/agent/run_directory.h"
#include "worker/agent/run_recorder.h"

namespace assay::agent {

// By the newest sample of the step in `directory`, and the log that `recorder` (may be null) has
// read. `now_ns` is of the clock by which samples are stamped; `memory_bytes` the node has in all,
// 0: not known. nullopt if there is no sample, or none of the last two minutes: as long is never
// between two of them, so the step measures nothing any more.
std::optional<v1::NodeFigures> ReadNodeFigures(const RunDirectory& directory,
                                               const RunRecorder* recorder, int64_t now_ns,
                                               int64_t memory_bytes);

}  // namespace assay::agent

#endif  // WORKER_AGENT_NODE_FIGURES_H_
