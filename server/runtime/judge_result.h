// The verdict on a run's result file, from the artifact that the worker uploaded.

#ifndef SERVER_RUNTIME_JUDGE_RESULT_H_
#define SERVER_RUNTIME_JUDGE_RESULT_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "server/core/types.h"
#include "server/runtime/effect_handler.h"
#include "server/runtime/rule_book.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

// Reads the log piece by piece, in memory that does not grow with it. NOT_FOUND if the run has no
// result file, INVALID_ARGUMENT if it has more than kMllogFileBytesMax bytes, DATA_LOSS if its
// bytes are not those that were uploaded. Blocks for the reading; thread-safe.
// `dataset`: of the submission; nullopt: not known any more.
absl::StatusOr<core::RunFacts> JudgeResult(const core::Run& run, const core::Submission& submission,
                                           const std::optional<core::Dataset>& dataset,
                                           const store::ArtifactStore& artifacts,
                                           const RuleBook& rules);

// Judges what workers have uploaded by the rules that accepted it. Thread-safe.
class RuleJudge final : public ResultJudge {
 public:
  // Both must outlive this.
  RuleJudge(const RuleBook* rules, const store::ArtifactStore* artifacts)
      : rules_(*rules), artifacts_(*artifacts) {}

  absl::StatusOr<core::RunFacts> JudgeRun(const core::Run& run, const core::Submission& submission,
                                          const std::optional<core::Dataset>& dataset) override {
    return JudgeResult(run, submission, dataset, artifacts_, rules_);
  }
  absl::StatusOr<Verdict> Score(const core::Submission& submission,
                                const std::vector<core::Run>& runs) override {
    return rules_.Score(submission, runs);
  }

 private:
  const RuleBook& rules_;
  const store::ArtifactStore& artifacts_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_JUDGE_RESULT_H_
