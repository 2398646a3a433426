// The thread that owns Core and the only writing connection.
//
// It takes all commands that wait, lets Core handle them, commits the outcome in one transaction,
// and only then gives replies and effects away: what was acknowledged is on stable storage. Group
// commit falls out of the loop.

#ifndef SERVER_RUNTIME_CORE_THREAD_H_
#define SERVER_RUNTIME_CORE_THREAD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "server/core/core.h"
#include "server/runtime/token_table.h"
#include "server/runtime/watchers.h"

namespace assay::store {
class Store;
}  // namespace assay::store

namespace assay::runtime {

struct CoreThreadOptions {
  size_t queue_limit = 10000;  // commands that may wait; also calls that may be parked
  size_t batch_max = 1000;     // commands in one transaction
  // The kernel's first-in first-out class for the committing thread, where we may: on a machine
  // whose cores are all busy an fsync else costs a scheduler tick (4 ms at 250 Hz) instead of 0.1
  // ms.
  bool is_realtime_wanted = true;
};

// Thread-safe.
class CoreThread {
 public:
  using Callback = absl::AnyInvocable<void(absl::StatusOr<core::Reply>)>;
  using EffectSink = absl::AnyInvocable<void(std::vector<core::Effect>)>;

  // Takes what the store has loaded. `clock`, `store`, `watchers` and `tokens` must outlive this;
  // from now on nothing else may write to `store`. `effects` is called on this thread after commits
  // and must not block.
  CoreThread(const Clock* clock, store::Store* store, core::Core core, Watchers* watchers,
             TokenTable* tokens, EffectSink effects, CoreThreadOptions options = {});
  ~CoreThread();  // as Stop
  CoreThread(const CoreThread&) = delete;
  CoreThread& operator=(const CoreThread&) = delete;

  // Begins to take commands, and gives away the effects that are outstanding. Call once.
  void Start();

  // Hands a command to the core. `callback` is called exactly once: on the core thread when the
  // outcome is durable, or at once, on the caller's, with RESOURCE_EXHAUSTED if the queue is full
  // or UNAVAILABLE after Stop. It must not block.
  //
  // Errors are those of the command (server/core/command.h). RESOURCE_EXHAUSTED also if the disk is
  // full: then nothing of the batch has happened.
  //
  // A Synchronize that finds nothing to change is parked up to its poll_timeout_us and answered as
  // soon as the worker should do something else, or calls again.
  void Post(core::Command command, Callback callback);

  // Makes the thread look at its clock now. For tests with a fake clock.
  void Poke();

  // Commits what is queued, answers all parked calls, and ends. Idempotent.
  void Stop();

 private:
  struct Item {
    core::Command command;
    Callback callback;
  };
  struct Parked {
    int64_t deadline_us = 0;
    core::Desired desired;
    Callback callback;
  };

  void Loop();
  std::vector<Item> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleBatch(std::vector<Item> items);
  void Deliver(std::vector<Item> items, core::Outcome outcome);
  void Park(const core::Command& command, core::SynchronizeReply reply, Callback callback);
  void AnswerParked(bool is_final);
  int64_t NowUs() const;

  // Constant after construction.
  const Clock* const clock_;
  store::Store* const store_;
  Watchers* const watchers_;
  TokenTable* const tokens_;
  const CoreThreadOptions options_;

  // Used on the core thread only, once started.
  core::Core core_;
  EffectSink effects_;
  std::map<std::string, Parked> parked_;  // by worker

  Mutex mutex_;
  CondVar wake_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_poked_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_CORE_THREAD_H_
