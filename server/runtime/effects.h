// The threads that carry out what the core wants done outside: verdicts (effect_handler.h), and
// getting nodes and giving them back (launch_handler.h). Each result goes back to the core as a
// command.

#ifndef SERVER_RUNTIME_EFFECTS_H_
#define SERVER_RUNTIME_EFFECTS_H_

#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"

#include "common/mutex.h"
#include "server/core/command.h"
#include "server/core/effect.h"
#include "server/launch/launcher.h"
#include "server/runtime/effect_handler.h"
#include "server/runtime/task_thread.h"

namespace assay::runtime {

// One thread for verdicts, which alone uses the handler, and one for the launcher, which may block
// for long.
class Effects {
 public:
  // Hands a command to the core. Must not block; called on both threads.
  using Post = absl::AnyInvocable<void(core::Command)>;

  explicit Effects(EffectHandler handler);
  ~Effects();

  // Where results go. Call once, before the first Run.
  void SetPost(Post post);

  // From now on `launcher` is asked for nodes, and the core knows that it is there; what the core
  // wants of a launcher before that is left for then. `launcher` must outlive the call of
  // StopLaunching. Thread-safe.
  void StartLaunching(launch::Launcher* launcher, core::LauncherStarted started);

  // Ends what the launcher was asked, then leaves it alone. Idempotent; thread-safe.
  void StopLaunching();

  // Queues effects. Returns at once; thread-safe.
  void Run(std::vector<core::Effect> effects);

  // Ends what is queued, then refuses.
  void Stop();

 private:
  std::optional<core::Command> CarryOut(const core::Effect& effect) ABSL_LOCKS_EXCLUDED(mutex_);

  EffectHandler handler_;
  Post post_;  // constant once running

  Mutex mutex_;
  launch::Launcher* launcher_ ABSL_GUARDED_BY(mutex_) = nullptr;

  TaskThread thread_;
  TaskThread launch_thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_EFFECTS_H_
