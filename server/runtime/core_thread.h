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
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "server/core/core.h"
#include "server/runtime/certificate_table.h"
#include "server/runtime/task_thread.h"
#include "server/runtime/token_table.h"
#include "server/runtime/watchers.h"

namespace assay::store {
class Checkpointer;
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
  // While less is free where the database is, nothing new is begun: what is left is for the runs
  // that are under way.
  int64_t disk_reserve_bytes = int64_t{256} << 20;
  // The longest that a call is parked: a worker that hangs in one must not look silent.
  int64_t park_max_us = 5LL * 1000 * 1000;
};

// Thread-safe.
class CoreThread {
 public:
  using Callback = absl::AnyInvocable<void(absl::StatusOr<core::Reply>)>;
  using EffectSink = absl::AnyInvocable<void(std::vector<core::Effect>)>;

  // What it works with. All but `store` may be used from elsewhere meanwhile; all must outlive it.
  struct Parts {
    const Clock* clock;
    store::Store* store;                // written by this thread alone
    store::Checkpointer* checkpointer;  // used by a thread of this one alone
    Watchers* watchers;
    TokenTable* tokens;
    CertificateTable* certificates;
  };

  // `core` continues from what the store has loaded. `effects` is called on this thread after
  // commits and must not block.
  CoreThread(const Parts& parts, core::Core core, EffectSink effects,
             CoreThreadOptions options = {});
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
  // (UNAUTHENTICATED).
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
    core::Desired desired;  // as it was when the call was parked
    Callback callback;
  };
  // A Synchronize of the batch that is being handled.
  struct Poll {
    size_t index;  // in the batch
    std::string worker;
    int64_t timeout_us;
  };

  // RESOURCE_EXHAUSTED if the command begins something and the disk is almost full.
  absl::Status CheckRoomFor(const core::Command& command) const;
  void Loop();
  std::vector<Item> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleBatch(std::vector<Item> items);
  // Handles and commits the items, then tells what came of it. After an error nothing has happened,
  // the state is as in the store, and the items are as they were.
  absl::Status TryBatch(std::vector<Item>* items);
  void HandleEach(std::vector<Item> items);
  void Refuse(Item item, const absl::Status& status);
  void Restore(const core::Command& command);
  // OK, or the error after which the state was read again. Ends the process where only a new start
  // can tell what is true.
  absl::Status Commit(const core::Outcome& outcome);
  void Tell(const core::Outcome& outcome);
  void Deliver(core::Outcome outcome, const std::vector<Poll>& polls,
               std::vector<Callback> callbacks);
  void Park(const Poll& poll, core::Desired desired, Callback callback);
  // Answers the parked calls of workers whose desired state has changed, and those whose time is
  // up.
  void AnswerParked(const std::set<std::string>& concerned);
  // Ends the parked calls of workers whose certificates were revoked.
  void RefuseParked(const std::vector<std::string>& revoked);
  void AnswerAllParked();
  void SyncMarkIfDue();
  void CheckpointIfDue();
  absl::Duration TimeToWait();
  int64_t NowUs();

  // Constant after construction.
  const Parts parts_;
  const CoreThreadOptions options_;

  // Used on the core thread only, once started.
  core::Core core_;
  EffectSink effects_;
  std::map<std::string, Parked> parked_;  // by worker
  bool are_effects_due_ = true;           // all that are outstanding: at the start, or after a loss
  MonoTime last_mono_;
  int64_t last_now_us_ = 0;
  int64_t mark_synced_at_us_ = 0;

  Mutex mutex_;
  CondVar wake_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_poked_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  TaskThread checkpoint_thread_{"checkpoint", 1};
  std::thread thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_CORE_THREAD_H_
