// What each effect comes to, without threads: judging logs and submissions. The result is a command
// to the core. What the launcher shall do is in launch_handler.h.

#ifndef SERVER_RUNTIME_EFFECT_HANDLER_H_
#define SERVER_RUNTIME_EFFECT_HANDLER_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "server/core/command.h"
#include "server/core/effect.h"
#include "server/runtime/rule_book.h"

namespace assay::store {
class Reader;
}  // namespace assay::store

namespace assay::runtime {

// What judges: the rules (judge_result.h), or in the simulation one that fails when it likes.
class ResultJudge {
 public:
  virtual ~ResultJudge() = default;

  // The verdict on the log of a run that is UPLOADING. An error fails the run with its message.
  // `dataset`: of the submission; nullopt: not known any more. `seen`: the findings that the run
  // has already, of which those of its nodes are kept.
  virtual absl::StatusOr<core::RunFacts> JudgeRun(const core::Run& run,
                                                  const core::Submission& submission,
                                                  const std::optional<core::Dataset>& dataset,
                                                  const std::vector<core::Finding>& seen) = 0;

  // The verdict on the succeeded runs of a submission that is CHECKING. An error leaves it so until
  // the effect comes again.
  virtual absl::StatusOr<Verdict> Score(const core::Submission& submission,
                                        const std::vector<core::Run>& runs) = 0;
};

// Effects may be repeated: each looks at the committed data first. Not thread-safe.
class EffectHandler {
 public:
  EffectHandler(std::unique_ptr<ResultJudge> judge, std::unique_ptr<store::Reader> reader);
  ~EffectHandler();
  EffectHandler(EffectHandler&&) noexcept;

  // Carries out an effect. What the core has to know of it then; nullopt if there is nothing to
  // say: it was done before, cannot be done now, or is the launcher's. May block for reading.
  std::optional<core::Command> Handle(const core::Effect& effect);

 private:
  using Result = std::optional<core::CommandBody>;
  Result Do(const core::CheckLog& effect);
  Result Do(const core::ScoreSubmission& effect);
  Result Do(const core::AcquireNodes&) { return std::nullopt; }
  Result Do(const core::ReleaseNodes&) { return std::nullopt; }
  std::vector<core::Finding> SeenOf(core::RunId run);

  std::unique_ptr<ResultJudge> judge_;
  std::unique_ptr<store::Reader> reader_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_EFFECT_HANDLER_H_
