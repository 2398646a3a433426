// The thread that carries out what the core wants done outside (effect_handler.h). Each result goes
// back to the core as a command.

#ifndef SERVER_RUNTIME_EFFECTS_H_
#define SERVER_RUNTIME_EFFECTS_H_

#include <vector>

#include "absl/functional/any_invocable.h"

#include "server/core/command.h"
#include "server/core/effect.h"
#include "server/runtime/effect_handler.h"
#include "server/runtime/task_thread.h"

namespace assay::runtime {

// One thread, which alone uses the handler.
class Effects {
 public:
  // Hands a command to the core. Must not block.
  using Post = absl::AnyInvocable<void(core::Command)>;

  explicit Effects(EffectHandler handler);
  ~Effects();

  // Where results go. Call once, before the first Run.
  void SetPost(Post post);

  // Queues effects. Returns at once; thread-safe.
  void Run(std::vector<core::Effect> effects);

  // Ends what is queued, then refuses.
  void Stop();

 private:
  EffectHandler handler_;
  Post post_;  // constant once running

  TaskThread thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_EFFECTS_H_
