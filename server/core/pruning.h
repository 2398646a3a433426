// Which instances a submitter may leave out of a throughput set (HPC rules, "Throughput").

#ifndef SERVER_CORE_PRUNING_H_
#define SERVER_CORE_PRUNING_H_

#include <vector>

#include "absl/status/status.h"

#include "server/core/types.h"

namespace assay::core {

// OK if `runs` may be left out of `submission`; that so many remain as its round asks for is not
// looked at. INVALID_ARGUMENT for no run, one that is named twice, or one of another submission;
// FAILED_PRECONDITION if it is no throughput set that was run here and is valid, or if others were
// left out before: who has seen the effect of a choice may not choose again.
absl::Status CheckPruning(const Submission& submission, const std::vector<RunId>& runs);

}  // namespace assay::core

#endif  // SERVER_CORE_PRUNING_H_
