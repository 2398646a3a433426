// Who watches the coordinator's loop at work, for figures (server/metrics). Nobody has to.

#ifndef SERVER_RUNTIME_LOOP_OBSERVER_H_
#define SERVER_RUNTIME_LOOP_OBSERVER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "server/core/core.h"

namespace assay::runtime {

// Called on the core thread, which waits meanwhile: must be quick, and must not call back into the
// loop. What is passed is gone when the call returns.
class LoopObserver {
 public:
  virtual ~LoopObserver() = default;

  struct Commit {
    const core::Outcome& outcome;  // has events
    const core::State& state;      // after them
    size_t command_count = 0;      // of the batch
    absl::Duration duration;       // of the transaction, until it was on stable storage
  };
  virtual void Committed(const Commit& commit) = 0;
  // Nothing of a batch has happened, for `reason`, which is an error of CoreStore::Commit.
  virtual void CommitRefused(const absl::Status& reason) = 0;

  // A turn has ended: at least one a second does while the loop is well.
  virtual void TurnEnded(const core::Core& core) = 0;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_LOOP_OBSERVER_H_
