// What other people's programs leave behind, as files that can be kept.

#ifndef WORKER_AGENT_WORKLOAD_COLLECTED_H_
#define WORKER_AGENT_WORKLOAD_COLLECTED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "worker/agent/workload/workload.h"

namespace assay::agent {

inline constexpr int64_t kCollectedBytesMax = int64_t{1} << 30;  // of a node
inline constexpr size_t kCollectedCountMax = 100;

// The regular files below `output` that one of `patterns` names (* and ? match within a name), in
// the order of their names, up to the limits; what does not fit is logged. Follows no links. A file
// "a/b.npy" of node 1 is called "output_1_a_b.npy".
std::vector<ArtifactFile> CollectOutput(const std::string& output,
                                        const std::vector<std::string>& patterns, int node_rank);

// Takes the middle out of a file of more than `bytes_max`, and says there how much it was. Nothing
// for a file that is not there. Nobody may write to it any more.
absl::Status CutMiddle(const std::string& path, int64_t bytes_max);

}  // namespace assay::agent

#endif  // WORKER_AGENT_WORKLOAD_COLLECTED_H_
