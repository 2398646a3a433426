// Reads samples ahead of the trainer with several threads, and delivers batches in exactly the
// order asked for.
//
// Promises: no sample file is opened before Start, because the first touch of the data starts the
// benchmark's clock. At most `depth` batches are in memory. Which thread reads what does not show
// in the result.
//
// Every sample of every epoch has a ticket: its number in reading order. Threads take tickets in
// order and read into the batch slot that belongs to the ticket; a slot is free again when the
// trainer asks for the batch after it.
//
// A sample that a device has kept (CachePlace) is not read again. Only its targets are kept here
// too, because the host judges predictions.

#ifndef WORKER_DATA_PREFETCHER_H_
#define WORKER_DATA_PREFETCHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/mutex.h"
#include "worker/data/batch_source.h"
#include "worker/data/sample_format.h"
#include "worker/data/sampler.h"

namespace assay::data {

struct PrefetchOptions {
  int batch_size = 1;
  int threads = 2;
  int depth = 2;        // batches in memory, the one that the trainer works on included; at least 2
  int first_epoch = 0;  // what the order is called with first
  int epochs = 1;       // batches run on from one epoch into the next without a pause
};

// The samples of an epoch in reading order: a multiple of the batch size. Called once
// per epoch, in order, one call at a time, from the reading threads; it must not call the
// prefetcher.
using EpochOrder = absl::AnyInvocable<std::vector<SampleToRead>(int epoch)>;

// The order that `sampler` gives: sample i is the file dir/names[i]. Opens nothing.
//   dir: the dataset, or with staging the directory that it was staged to.
//   names: those of the whole split, sorted, at least as many as the sampler's samples.
EpochOrder OrderOf(const Sampler& sampler, std::string dir, std::vector<std::string> names);

class Prefetcher final : public BatchSource {
 public:
  // Opens no file and starts no thread.
  // INVALID_ARGUMENT: an option out of range.
  static absl::StatusOr<std::unique_ptr<Prefetcher>> Create(const PrefetchOptions& options,
                                                            const SampleFormat& format,
                                                            EpochOrder order);
  // Stops reading and waits for the threads; may come at any time.
  ~Prefetcher() override;

  // Begins to read. Call once.
  void Start();

  // See BatchSource; delivers each sample of each epoch. Errors come in order too: all batches
  // before that of the first bad sample are delivered. Call from one thread.
  // FAILED_PRECONDITION: before Start. INVALID_ARGUMENT: an epoch is empty or not a multiple of the
  // batch size. Otherwise the codes of SampleReader::Read, naming the file.
  absl::StatusOr<const Batch*> Next() override;

  // What Next will deliver, if it has been read already; null if not, or if Next will fail. Never
  // waits, and delivers nothing. Valid until the call after that Next. From Next's thread.
  const Batch* Peek();

  // The memory in which all batches lie, for as long as this lives.
  std::vector<std::span<std::byte>> memory();

  // Bytes read from storage so far. Thread-safe.
  int64_t stored_bytes() const;

 private:
  struct Slot {
    Batch batch;
    int missing = 0;  // samples not yet read; guarded by mutex_
  };
  // A sample to read, and where to put it.
  struct Ticket {
    int64_t number = 0;
    SampleToRead sample;
  };

  Prefetcher(const PrefetchOptions& options, const SampleFormat& format, EpochOrder order);

  void ReadLoop();
  std::optional<Ticket> TakeTicket();
  bool CanTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasMoreTickets() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadSample(const Ticket& ticket, SampleReader* reader);
  void Finish(const Ticket& ticket, const absl::Status& status, int64_t bytes);
  void Fail(int64_t ticket, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasFailed(int64_t last_ticket) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseDelivered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Slot* SlotOf(int64_t batch);
  absl::StatusOr<Batch*> WaitForNext();
  Batch* FindNext();
  void RestoreTargets(Batch* batch);

  // Constant after construction. The content of a slot belongs to the threads that hold its tickets
  // until `missing` is 0, and then to the trainer until the next call of Next.
  const PrefetchOptions options_;
  const SampleFormat format_;
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;

  // The trainer's.
  absl::flat_hash_map<int64_t, std::vector<std::byte>> kept_targets_;  // by slot of the cache
  bool is_next_restored_ = false;

  mutable Mutex mutex_;
  CondVar slot_freed_;
  CondVar batch_ready_;
  EpochOrder order_ ABSL_GUARDED_BY(mutex_);
  std::vector<SampleToRead> epoch_samples_ ABSL_GUARDED_BY(mutex_);
  size_t epoch_position_ ABSL_GUARDED_BY(mutex_) = 0;  // next of epoch_samples_
  int next_epoch_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_exhausted_ ABSL_GUARDED_BY(mutex_) = false;  // next_ticket_ will not grow
  int64_t delivered_ ABSL_GUARDED_BY(mutex_) = 0;      // batches given to the trainer
  int64_t released_ ABSL_GUARDED_BY(mutex_) = 0;       // batches it has done with
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  int64_t error_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status returned_error_ ABSL_GUARDED_BY(mutex_);
  int64_t stored_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace assay::data

#endif  // WORKER_DATA_PREFETCHER_H_
