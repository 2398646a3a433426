// Carries out what the core wants done outside: judging logs and submissions, starting agents. Each
// result goes back to the core as a command.

#ifndef SERVER_RUNTIME_EFFECTS_H_
#define SERVER_RUNTIME_EFFECTS_H_

#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include "server/core/command.h"
#include "server/core/effect.h"
#include "server/runtime/rule_book.h"
#include "server/runtime/task_thread.h"

namespace assay::store {
class ArtifactStore;
class Reader;
}  // namespace assay::store

namespace assay::runtime {

// One thread. Effects may be repeated: each looks at the committed data first.
class Effects {
 public:
  // Hands a command to the core. Must not block.
  using Post = absl::AnyInvocable<void(core::Command)>;
  // Starts agents; OK also if they run already. Called on the effects thread.
  using Launch = absl::AnyInvocable<absl::Status(const core::LaunchAgents&)>;

  // `rules` and `artifacts` must outlive this. `launch` may be null: agents come by themselves.
  Effects(const RuleBook* rules, std::unique_ptr<store::Reader> reader,
          const store::ArtifactStore* artifacts, Launch launch);
  ~Effects();

  // Where results go. Call once, before the first Run.
  void SetPost(Post post);

  // Queues effects. Returns at once; thread-safe.
  void Run(std::vector<core::Effect> effects);

  // Ends what is queued, then refuses.
  void Stop();

 private:
  void Do(const core::CheckLog& effect);
  void Do(const core::ScoreSubmission& effect);
  void Do(const core::LaunchAgents& effect);

  // Constant once running; used on the thread only.
  const RuleBook* const rules_;
  const std::unique_ptr<store::Reader> reader_;
  const store::ArtifactStore* const artifacts_;
  Launch launch_;
  Post post_;

  TaskThread thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_EFFECTS_H_
