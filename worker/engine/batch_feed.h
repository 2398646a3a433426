// How batches get from the host into the tensors that a model reads.
//
// A backend in the host's memory copies them. One with memory of its own has a second set of
// tensors, into which the next batch is sent while a step computes (SideCopies); the step after it
// takes it over by a copy on the device, because a recorded step reads at fixed addresses. Samples
// that the device keeps (CachePlace) do not travel again.

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
#include "worker/engine/backend.h"
#include "worker/engine/batch.h"
#include "worker/engine/side_copies.h"
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
  // Waits until the batch that was taken has left the host, and one that was staged in vain too.
  void Await();
  // Begins to send what comes after the work under way, where the backend can; else does nothing.
  // `next` must stay as it is until the Await after the next Take, which takes it over if it is
  // given the same.
  void Stage(const Batch& next);

  // Samples taken so far that did not travel, because they were kept.
  int64_t kept_samples() const { return kept_samples_; }

 private:
  // Samples in a row, in the batch and, where that matters, in the cache.
  struct Run {
    int64_t first;
    int64_t count;
    int64_t slot;
  };
  enum class Which { kTravelling, kToKeep, kKept };
  // The input or the targets of a batch.
  struct Column {
    Tensor taken;   // what the model reads
    Tensor staged;  // the same shape; empty where nothing is sent ahead

    int64_t bytes_per_sample() const;
  };

  BatchFeed(Backend* backend, const Tensor& input, const Tensor& targets);
  absl::Status Commit();
  int64_t SamplesOf(const Batch& batch) const;
  std::vector<Run> RunsOf(const Batch& batch, Which which) const;
  bool IsStaged(const Batch& batch) const;
  void TakeTravelling(const Batch& batch, bool is_staged);
  void Keep(const Batch& batch);
  Tensor Kept(size_t column, const Run& run) const;
  absl::Status Send(const Batch& next);

  Backend* const backend_;
  SideCopies* copies_;  // null: nothing is sent ahead
  const SampleCache* cache_ = nullptr;
  std::array<Column, 2> columns_;
  Arena staging_;
  Batch staged_;             // empty: nothing is under way
  bool is_leaving_ = false;  // the host's memory may still be read
  int64_t kept_samples_ = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BATCH_FEED_H_
