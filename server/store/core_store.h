// What the coordinator's loop asks of its store, as an interface: Store, or in the simulation one
// whose disk is full, refuses rows, or dies.

#ifndef SERVER_STORE_CORE_STORE_H_
#define SERVER_STORE_CORE_STORE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/core/core.h"
#include "server/core/types.h"

namespace assay::store {

// Not thread-safe but for FreeDiskBytes; may move between threads.
class CoreStore {
 public:
  virtual ~CoreStore() = default;

  // All that is alive: open submissions, those closed ones of which a worker still holds a run, all
  // workers, datasets, tokens and requests. DATA_LOSS if rows do not fit together.
  virtual absl::StatusOr<core::State> Load() = 0;

  // A run whatever its age, and a submission that has ended with its runs, for Core::Restore.
  // NOT_FOUND.
  virtual absl::StatusOr<core::Run> LoadRun(core::RunId id) = 0;
  virtual absl::StatusOr<core::ClosedSubmission> LoadClosed(core::SubmissionId id) = 0;

  // Makes an outcome durable: its events, its run events, and the rows of all that the events
  // touched as they are in `state`. All or nothing; when it returns OK the bytes are on stable
  // storage. RESOURCE_EXHAUSTED if the disk is full; INVALID_ARGUMENT if a value is too large for a
  // row, INTERNAL if the schema does not allow it: nothing has changed. Any other error leaves it
  // open what is on disk: the process has to start again.
  virtual absl::Status Commit(const core::Outcome& outcome, const core::State& state) = 0;

  // Brings the high-water mark to stable storage: it is written at each commit, so that it outlives
  // the process, but only this makes it outlive a loss of power.
  virtual absl::Status SyncMark() = 0;

  // Frames (pages of 4 KiB) in the write-ahead log. Let a Checkpointer work when there are many.
  virtual int64_t wal_frames() const = 0;

  // Copies the write-ahead log into the database, on this connection.
  virtual absl::Status Checkpoint() = 0;

  // Bytes that this process may still write where the database is. Thread-safe.
  virtual int64_t FreeDiskBytes() const = 0;
};

}  // namespace assay::store

#endif  // SERVER_STORE_CORE_STORE_H_
