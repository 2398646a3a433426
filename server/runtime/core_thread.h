// The thread of the coordinator's loop, and the queue before it: it takes all commands that wait
// and gives the loop (core_loop.h) a turn with them, so that they share a commit. Where several
// came the last time it waits a little for as many, at most for half a commit (ADR 0253).

#ifndef SERVER_RUNTIME_CORE_THREAD_H_
#define SERVER_RUNTIME_CORE_THREAD_H_

#include <cstddef>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "common/mutex.h"
#include "server/core/core.h"
#include "server/runtime/command_queue.h"
#include "server/runtime/core_loop.h"
#include "server/runtime/task_thread.h"

namespace assay::store {
class Checkpointer;
}  // namespace assay::store

namespace assay::runtime {

struct CoreThreadOptions {
  size_t queue_limit = 10000;  // commands that may wait; also calls that may be parked
  size_t batch_max = 1000;     // commands in one transaction
  // The kernel's first-in first-out class for the committing thread, where we may: on a machine
  // whose cores are all busy an fsync else costs a scheduler tick (4 ms at 250 Hz) instead of 0.1
  // ms.
  bool is_realtime_wanted = true;
  CoreLoopOptions loop;
};

// Thread-safe.
class CoreThread {
 public:
  using Callback = ReplyCallback;
  using EffectSink = CoreLoop::EffectSink;
  using Parts = CoreLoop::Parts;

  // `core` continues from what the store has loaded. `effects` is called on this thread after
  // commits and must not block. `checkpointer`, which must outlive this, is used by a thread of
  // this one alone.
  CoreThread(const Parts& parts, store::Checkpointer* checkpointer, core::Core core,
             EffectSink effects, const CoreThreadOptions& options = {});
  ~CoreThread();  // as Stop
  CoreThread(const CoreThread&) = delete;
  CoreThread& operator=(const CoreThread&) = delete;

  // Begins to take commands, and gives away the effects that are outstanding. Call once.
  void Start();

  // Hands a command to the core. `callback` is called exactly once: on the core thread when the
  // outcome is durable, or at once, on the caller's, with RESOURCE_EXHAUSTED if the queue is full
  // or UNAVAILABLE after Stop. It must not block.
  //
  // Errors are those of the command (server/core/command.h). INVALID_ARGUMENT or INTERNAL also if
  // the store cannot hold what it comes to; then nothing of it has happened, and the commands that
  // waited beside it are handled without it. RESOURCE_EXHAUSTED also if the disk is full: then
  // nothing of the batch has happened; and, at once, for a submission or an import while less than
  // the reserve is free. What the coordinator posts itself (principal
  // kCoordinator) is never refused for lack of room: there is little of it and it ends work.
  //
  // A Synchronize that finds nothing to change is parked up to its poll_timeout_us and answered as
  // soon as the worker should do something else, calls again, or has its certificates revoked
  // (UNAUTHENTICATED). While it is, its worker does not look silent, unless `is_awaited` says that
  // nobody waits for the answer: then the call ends (CANCELLED). `is_awaited` is called on the core
  // thread, about once a second, and must not block.
  void Post(core::Command command, Callback callback, IsAwaited is_awaited = {});

  // Commands that wait.
  size_t queue_length() const;

  // Makes the thread look at its clock now. For tests with a fake clock.
  void Poke();

  // Commits what is queued, answers all parked calls, and ends. Idempotent.
  void Stop();

 private:
  void Loop();
  std::vector<QueuedCommand> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits, not for long, until as many wait as the last batch had.
  void Gather() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginCheckpoint();

  // Constant after construction.
  store::Checkpointer* const checkpointer_;
  const CoreThreadOptions options_;

  CoreLoop loop_;  // used on the core thread only, once started; but for what is thread-safe in it

  mutable Mutex mutex_;
  CondVar wake_;
  CommandQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool is_poked_ ABSL_GUARDED_BY(mutex_) = false;
  size_t wake_size_ ABSL_GUARDED_BY(mutex_) = 0;  // commands from which the thread is woken
  size_t last_batch_size_ ABSL_GUARDED_BY(mutex_) = 0;

  TaskThread checkpoint_thread_{"checkpoint", 1};
  std::thread thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_CORE_THREAD_H_
