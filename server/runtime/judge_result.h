// The verdict on a run's result file, from the artifact that the worker uploaded.

#ifndef SERVER_RUNTIME_JUDGE_RESULT_H_
#define SERVER_RUNTIME_JUDGE_RESULT_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "server/core/types.h"
#include "server/runtime/effect_handler.h"
#include "server/runtime/energy_judge.h"
#include "server/runtime/rule_book.h"
#include "server/store/artifacts.h"

namespace assay::runtime {

// Reads the log piece by piece, in memory that does not grow with it. NOT_FOUND if the run has no
// result file, INVALID_ARGUMENT if it has more than kMllogFileBytesMax bytes, DATA_LOSS if its
// bytes are not those that were uploaded. Blocks for the reading; thread-safe.
// `dataset`: of the submission; nullopt: not known any more. `seen`: as ResultJudge::JudgeRun.
absl::StatusOr<core::RunFacts> JudgeResult(const core::Run& run, const core::Submission& submission,
                                           const std::optional<core::Dataset>& dataset,
                                           const std::vector<core::Finding>& seen,
                                           const store::ArtifactStore& artifacts,
                                           const RuleBook& rules);

// Judges what workers have uploaded by the rules that accepted it. Thread-safe.
class RuleJudge final : public ResultJudge {
 public:
  // The first two must outlive this. `switches`: of the site, whose power each run is charged with.
  RuleJudge(const RuleBook* rules, const store::ArtifactStore* artifacts,
            std::vector<core::SwitchPower> switches = {})
      : rules_(*rules), artifacts_(*artifacts), switches_(std::move(switches)) {}

  absl::StatusOr<core::RunFacts> JudgeRun(const core::Run& run, const core::Submission& submission,
                                          const std::optional<core::Dataset>& dataset,
                                          const std::vector<core::Finding>& seen) override {
    absl::StatusOr<core::RunFacts> facts =
        JudgeResult(run, submission, dataset, seen, artifacts_, rules_);
    if (facts.ok()) ChargeSwitches(switches_, &*facts);
    return facts;
  }
  absl::StatusOr<Verdict> Score(const core::Submission& submission,
                                const std::vector<core::Run>& runs) override {
    return rules_.Score(submission, runs);
  }

 private:
  const RuleBook& rules_;
  const store::ArtifactStore& artifacts_;
  const std::vector<core::SwitchPower> switches_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_JUDGE_RESULT_H_
