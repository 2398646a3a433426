// One turn of the coordinator, without threads: a batch of commands in, one transaction, replies
// and effects out. What was acknowledged is on stable storage.
//
// CoreThread gives it turns in the daemon; the simulation (tests/sim) under simulated time and on a
// disk that fails.

#ifndef SERVER_RUNTIME_CORE_LOOP_H_
#define SERVER_RUNTIME_CORE_LOOP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "server/core/core.h"
#include "server/runtime/certificate_table.h"
#include "server/runtime/command_queue.h"
#include "server/runtime/loop_observer.h"
#include "server/runtime/parked_polls.h"
#include "server/runtime/slewed_clock.h"
#include "server/runtime/token_table.h"
#include "server/runtime/watchers.h"

namespace assay::store {
class CoreStore;
}  // namespace assay::store

namespace assay::runtime {

struct CoreLoopOptions {
  // While less is free where the database is, nothing new is begun: what is left is for the runs
  // that are under way.
  int64_t disk_reserve_bytes = int64_t{256} << 20;
  // The longest that a call is parked. Its worker does not look silent meanwhile as long as
  // somebody waits for the answer.
  int64_t park_max_us = 20LL * 1000 * 1000;
};

// Not thread-safe but for CheckRoomFor. No callback may call back into the loop.
class CoreLoop {
 public:
  using EffectSink = absl::AnyInvocable<void(std::vector<core::Effect>)>;

  // What it works with. All but `store` may be used from elsewhere meanwhile; all must outlive it.
  struct Parts {
    const Clock* clock;
    store::CoreStore* store;  // written by the loop alone
    Watchers* watchers;
    TokenTable* tokens;
    CertificateTable* certificates;
    LoopObserver* observer = nullptr;  // may be none
  };

  // `core` continues from what the store has loaded. `effects` is called after commits.
  // `begin_checkpoint` is called when the write-ahead log should be copied into the database
  // beside the commits. Neither may block.
  CoreLoop(const Parts& parts, core::Core core, EffectSink effects,
           absl::AnyInvocable<void()> begin_checkpoint, const CoreLoopOptions& options);

  // RESOURCE_EXHAUSTED if the command begins something and the disk is almost full: to be asked
  // before it is queued. Thread-safe.
  absl::Status CheckRoomFor(const core::Command& command) const;

  // Handles a batch, which may be empty, and all that time has brought since. Each callback is
  // called exactly once: with the outcome when it is durable, or with the reason why nothing has
  // happened; that of a parked call in a later turn.
  void HandleBatch(std::vector<QueuedCommand> batch);

  // The write-ahead log has been copied but for a few frames: the loop copies these after its next
  // commit. Thread-safe.
  void FinishCheckpoint() { is_checkpoint_short_ = true; }

  // How long the last commit took; zero if the last turn had nothing to commit.
  absl::Duration last_commit() const { return last_commit_; }

  // How long until the next turn is due, were there no command.
  absl::Duration TimeToWait();

  // Answers all parked calls: the last turn was.
  void AnswerAllParked();

  const core::Core& core() const { return core_; }

 private:
  // A Synchronize of the batch that is being handled.
  struct Poll {
    size_t index;  // in the batch
    std::string worker;
    int64_t timeout_us;
  };

  // Handles and commits the batch, then tells what came of it. After an error nothing has happened,
  // the state is as in the store, and the batch is as it was.
  absl::Status TryBatch(std::vector<QueuedCommand>* batch);
  void HandleAll(std::vector<QueuedCommand> batch);
  void HandleEach(std::vector<QueuedCommand> batch);
  void Refuse(QueuedCommand item, const absl::Status& status);
  void Restore(const core::Command& command);
  // OK, or the error after which the state was read again. Ends the process where only a new start
  // can tell what is true.
  absl::Status Commit(const core::Outcome& outcome, size_t command_count);
  void Tell(const core::Outcome& outcome);
  void Deliver(core::Outcome outcome, const std::vector<Poll>& polls,
               std::vector<QueuedCommand> items);
  void AnswerParked(const std::set<std::string>& concerned);
  // Now and then looks whether the parked calls are still waited for.
  void WatchParked(int64_t now_us);
  int64_t ParkedWatchUs() const;
  void GiveEffects(std::vector<core::Effect> effects);
  void SyncMarkIfDue();
  void CheckpointIfDue();

  const Parts parts_;
  const CoreLoopOptions options_;
  core::Core core_;
  EffectSink effects_;
  absl::AnyInvocable<void()> begin_checkpoint_;
  SlewedClock clock_;
  ParkedPolls parked_;
  bool are_effects_due_ = true;  // all that are outstanding: at the start, or after a loss
  absl::Duration last_commit_;
  std::atomic<bool> is_checkpoint_short_ = false;
  bool was_refused_ = false;  // the last commit
  int64_t mark_synced_at_us_ = 0;
  int64_t parked_watched_at_us_ = 0;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_CORE_LOOP_H_
