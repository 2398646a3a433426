// The verdict on a run's result file, from the artifact that the worker uploaded.

#ifndef SERVER_RUNTIME_JUDGE_RESULT_H_
#define SERVER_RUNTIME_JUDGE_RESULT_H_

#include "absl/status/statusor.h"

#include "server/core/types.h"
#include "server/runtime/rule_book.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

// Reads the log piece by piece, in memory that does not grow with it. NOT_FOUND if the run has no
// result file, INVALID_ARGUMENT if it has more than kMllogFileBytesMax bytes, DATA_LOSS if its
// bytes are not those that were uploaded. Blocks for the reading; thread-safe.
absl::StatusOr<core::RunFacts> JudgeResult(const core::Run& run, const core::Submission& submission,
                                           const store::ArtifactStore& artifacts,
                                           const RuleBook& rules);

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_JUDGE_RESULT_H_
