// How batches get from the host into the tensors that a model reads.
//
// A backend in the host's memory copies them. One with memory of its own has a second set of
// tensors, into which the next batch is prefetched on a copy stream while a step computes
// (AsyncCopier); the step after it takes it over by a copy on the device, because a recorded step
// reads at fixed addresses. Samples that the device keeps (CachePlace) are not copied again.

#ifndef WORKER_ENGINE_BATCH_FEED_H_
#define WORKER_ENGINE_BATCH_FEED_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/engine/arena.h"
#include "worker/engine/async_copier.h"
#include "worker/engine/backend.h"
#include "worker/engine/batch.h"
#include "worker/engine/tensor.h"

namespace assay {

// Whole samples in a device's memory.
class SampleCache {
 public:
  // Room for `samples` samples of batches like these. RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<SampleCache>> Make(Backend* backend, const Tensor& input,
                                                           const Tensor& targets, int64_t samples);

  // (samples, elements of one)
  const Tensor& input() const { return input_; }
  const Tensor& targets() const { return targets_; }

 private:
  explicit SampleCache(Backend* backend);

  Arena memory_;
  Tensor input_, targets_;
};

// Not thread-safe.
class BatchFeed {
 public:
  // `input`, `targets`: what a model reads, batch first. RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<BatchFeed>> Make(Backend* backend, const Tensor& input,
                                                         const Tensor& targets);
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  // Batches may name places in `cache`, which must outlive this feed.
  void set_cache(const SampleCache* cache) { cache_ = cache; }

  // Puts a batch of up to as many samples into the tensors; those that a short batch lacks keep
  // older values. It must stay as it is until Await.
  void Take(const Batch& batch);
  // Waits until the host's memory of the batch that was taken, and of one that was prefetched in
  // vain, is no longer read.
  void Await();
  // Begins to copy the next batch while work goes on, where the backend can; else does nothing.
  // `next` must stay as it is until the Await after the next Take, which takes it over if it is
  // given the same.
  void Prefetch(const Batch& next);

  // Samples taken so far that were not copied from the host, because the device had kept them.
  int64_t kept_samples() const { return kept_samples_; }

 private:
  // Samples in a row, in the batch and, where that matters, in the cache.
  struct Run {
    int64_t first;
    int64_t count;
    int64_t slot;
  };
  enum class Which { kFromHost, kToKeep, kKept };
  // The input or the targets of a batch.
  struct Column {
    Tensor taken;       // what the model reads
    Tensor prefetched;  // the same shape; empty where nothing is prefetched

    int64_t bytes_per_sample() const;
  };

  BatchFeed(Backend* backend, const Tensor& input, const Tensor& targets);
  absl::Status Commit();
  int64_t SamplesOf(const Batch& batch) const;
  std::vector<Run> RunsOf(const Batch& batch, Which which) const;
  bool IsPrefetched(const Batch& batch) const;
  void TakeFromHost(const Batch& batch, bool is_prefetched);
  void Keep(const Batch& batch);
  Tensor Kept(size_t column, const Run& run) const;
  absl::Status StartCopies(const Batch& next);

  Backend* const backend_;
  AsyncCopier* copier_;  // null: nothing is prefetched
  const SampleCache* cache_ = nullptr;
  std::array<Column, 2> columns_;
  Arena prefetch_memory_;
  Batch prefetched_;         // empty: nothing is under way
  bool is_copying_ = false;  // the host's memory may still be read
  int64_t kept_samples_ = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BATCH_FEED_H_
