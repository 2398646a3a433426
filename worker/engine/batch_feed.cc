#include "worker/engine/batch_feed.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"

namespace assay {
namespace {

constexpr size_t kAlignment = 64;

Shape RowsLike(const Tensor& batch, int64_t samples) {
  return {samples, batch.elements() / batch.shape[0]};
}

// Samples of a tensor that has them first.
Tensor Rows(const Tensor& tensor, int64_t first, int64_t count) {
  const Shape rows = RowsLike(tensor, count);
  return tensor.Part(first * rows[1], rows);
}

}  // namespace

SampleCache::SampleCache(Backend* backend) : memory_(backend, kAlignment) {}

absl::StatusOr<std::unique_ptr<SampleCache>> SampleCache::Make(Backend* backend,
                                                               const Tensor& input,
                                                               const Tensor& targets,
                                                               int64_t samples) {
  std::unique_ptr<SampleCache> cache(new SampleCache(backend));
  cache->memory_.Reserve(RowsLike(input, samples), input.dtype, &cache->input_);
  cache->memory_.Reserve(RowsLike(targets, samples), targets.dtype, &cache->targets_);
  RETURN_IF_ERROR(Annotate(cache->memory_.Commit(),
                           absl::StrCat("a cache of ", samples, " samples on the device")));
  return cache;
}

int64_t BatchFeed::Column::bytes_per_sample() const {
  return static_cast<int64_t>(taken.bytes()) / taken.shape[0];
}

absl::StatusOr<std::unique_ptr<BatchFeed>> BatchFeed::Make(Backend* backend, const Tensor& input,
                                                           const Tensor& targets) {
  std::unique_ptr<BatchFeed> feed(new BatchFeed(backend, input, targets));
  RETURN_IF_ERROR(Annotate(feed->Commit(), "buffers for the next batch"));
  return feed;
}

BatchFeed::BatchFeed(Backend* backend, const Tensor& input, const Tensor& targets)
    : backend_(backend),
      copier_(backend->async_copier()),
      columns_{{{input, {}}, {targets, {}}}},
      prefetch_memory_(backend, kAlignment) {}

absl::Status BatchFeed::Commit() {
  if (copier_ == nullptr) return absl::OkStatus();
  for (Column& column : columns_)
    prefetch_memory_.Reserve(column.taken.shape, column.taken.dtype, &column.prefetched);
  RETURN_IF_ERROR(prefetch_memory_.Commit());
  copier_->MakeCopiesWaitForWork();  // the memory is being cleared
  return absl::OkStatus();
}

int64_t BatchFeed::SamplesOf(const Batch& batch) const {
  const Column& input = columns_[0];
  const Column& targets = columns_[1];
  const int64_t samples = std::ssize(batch.targets) / targets.bytes_per_sample();
  CHECK(samples >= 1 && samples <= input.taken.shape[0] &&
        std::ssize(batch.targets) == samples * targets.bytes_per_sample() &&
        std::ssize(batch.input) == samples * input.bytes_per_sample() &&
        (batch.cache.empty() || std::ssize(batch.cache) == samples))
      << "target_bytes=" << batch.targets.size() << " input_bytes=" << batch.input.size()
      << " places=" << batch.cache.size() << " input=" << input.taken.shape.ToString();
  return samples;
}

// Those of a batch, as few as possible.
std::vector<BatchFeed::Run> BatchFeed::RunsOf(const Batch& batch, Which which) const {
  const auto is_wanted = [which](const CachePlace& place) {
    switch (which) {
      case Which::kFromHost:
        return !place.is_there;
      case Which::kToKeep:
        return place.is_to_keep();
      case Which::kKept:
        return place.is_there;
    }
    return false;
  };
  std::vector<Run> runs;
  const int64_t samples = SamplesOf(batch);
  for (int64_t i = 0; i < samples; ++i) {
    const CachePlace place =
        batch.cache.empty() ? CachePlace() : batch.cache[static_cast<size_t>(i)];
    if (!is_wanted(place)) continue;
    const bool goes_on =
        !runs.empty() && runs.back().first + runs.back().count == i &&
        (which == Which::kFromHost || runs.back().slot + runs.back().count == place.slot);
    if (goes_on) {
      ++runs.back().count;
    } else {
      runs.push_back({.first = i, .count = 1, .slot = place.slot});
    }
  }
  return runs;
}

bool BatchFeed::IsPrefetched(const Batch& batch) const {
  return !prefetched_.input.empty() && prefetched_.input.data() == batch.input.data() &&
         prefetched_.targets.data() == batch.targets.data() &&
         prefetched_.targets.size() == batch.targets.size();
}

void BatchFeed::Take(const Batch& batch) {
  const bool is_prefetched = IsPrefetched(batch);
  is_copying_ = !prefetched_.input.empty();
  if (is_copying_) copier_->MakeWorkWaitForCopies();
  TakeFromHost(batch, is_prefetched);
  if (is_copying_) copier_->MakeCopiesWaitForWork();
  prefetched_ = {};
  Keep(batch);
}

void BatchFeed::TakeFromHost(const Batch& batch, bool is_prefetched) {
  const std::span<const std::byte> host[] = {batch.input, batch.targets};
  for (const Run& run : RunsOf(batch, Which::kFromHost))
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      const Tensor taken = Rows(column.taken, run.first, run.count);
      if (is_prefetched) {
        backend_->Copy(Rows(column.prefetched, run.first, run.count), taken);
      } else {
        backend_->CopyIn(host[i].data() + run.first * column.bytes_per_sample(), taken);
      }
    }
}

// New samples go into the cache before old ones come out of it: a batch that is filled up repeats
// its last sample.
void BatchFeed::Keep(const Batch& batch) {
  for (const Run& run : RunsOf(batch, Which::kToKeep))
    for (size_t i = 0; i < columns_.size(); ++i)
      backend_->Copy(Rows(columns_[i].taken, run.first, run.count), Kept(i, run));
  for (const Run& run : RunsOf(batch, Which::kKept)) {
    kept_samples_ += run.count;
    for (size_t i = 0; i < columns_.size(); ++i)
      backend_->Copy(Kept(i, run), Rows(columns_[i].taken, run.first, run.count));
  }
}

// A run's part of the cache.
Tensor BatchFeed::Kept(size_t column, const Run& run) const {
  CHECK(cache_ != nullptr) << "slot=" << run.slot << " of no cache";
  return Rows(column == 0 ? cache_->input() : cache_->targets(), run.slot, run.count);
}

void BatchFeed::Await() {
  if (std::exchange(is_copying_, false)) copier_->Await();
}

void BatchFeed::Prefetch(const Batch& next) {
  if (copier_ == nullptr) return;
  CHECK(prefetched_.input.empty()) << "a batch is under way already";
  const absl::Status status = StartCopies(next);
  if (status.ok()) {
    prefetched_ = next;
    return;
  }
  LOG(WARNING) << "batches are no longer prefetched: " << status;
  copier_->Await();
  copier_ = nullptr;
}

absl::Status BatchFeed::StartCopies(const Batch& next) {
  const std::span<const std::byte> host[] = {next.input, next.targets};
  for (const Run& run : RunsOf(next, Which::kFromHost))
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      RETURN_IF_ERROR(copier_->CopyAsync(host[i].data() + run.first * column.bytes_per_sample(),
                                         Rows(column.prefetched, run.first, run.count)));
    }
  return absl::OkStatus();
}

}  // namespace assay
