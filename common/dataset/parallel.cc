#include "common/dataset/parallel.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace assay::dataset {
namespace {

// Hands out indices in order, and keeps the error of the lowest index.
class IndexQueue {
 public:
  explicit IndexQueue(int64_t count) : count_(count) {}

  // The next index, or -1 when there is none or an error has been reported.
  int64_t Take() {
    MutexLock lock(&mutex_);
    if (!error_.ok() || next_ == count_) return -1;
    return next_++;
  }

  void Fail(int64_t index, const absl::Status& error) {
    MutexLock lock(&mutex_);
    if (!error_.ok() && error_index_ < index) return;
    error_ = error;
    error_index_ = index;
  }

  absl::Status error() const {
    MutexLock lock(&mutex_);
    return error_;
  }

 private:
  const int64_t count_;
  mutable Mutex mutex_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t error_index_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

ProgressMeter::ProgressMeter(int64_t files_total, ProgressCallback callback)
    : callback_(std::move(callback)), progress_{.files_total = files_total} {}

void ProgressMeter::AddFile(int64_t bytes) {
  MutexLock lock(&mutex_);
  ++progress_.files;
  progress_.bytes += bytes;
  if (callback_) callback_(progress_);
}

Progress ProgressMeter::total() const {
  MutexLock lock(&mutex_);
  return progress_;
}

absl::Status ForEachIndex(int64_t count, int threads,
                          absl::FunctionRef<absl::Status(int thread, int64_t index)> body) {
  IndexQueue queue(count);
  const auto run = [&queue, body](int thread) {
    for (int64_t index = queue.Take(); index >= 0; index = queue.Take()) {
      const absl::Status status = body(thread, index);
      if (!status.ok()) queue.Fail(index, status);
    }
  };
  const int workers =
      static_cast<int>(std::clamp<int64_t>(threads, 1, std::max<int64_t>(count, 1)));
  std::vector<std::thread> others;
  for (int thread = 1; thread < workers; ++thread)
    others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others)
    other.join();
  return queue.error();
}

}  // namespace assay::dataset
