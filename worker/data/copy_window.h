// How many files are copied at once: as many as make copying faster.
//
// One file at a time waits for the latency of each request; hundreds fill memory and gain nothing.
// What the right number is depends on the storage: a disk has enough of 8, a file system that takes
// 5 ms for each request wants 64.

#ifndef WORKER_DATA_COPY_WINDOW_H_
#define WORKER_DATA_COPY_WINDOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "common/clock.h"
#include "common/mutex.h"

namespace assay::data {

// A number that doubles while the rate of work grows by a tenth, and then stays at the last one
// that paid. Not thread-safe.
class AdaptiveSize {
 public:
  // Grows from `first` to `max` at most, which is at least `first`.
  AdaptiveSize(int first, int max) : size_(first), max_(max) {}

  int size() const { return size_; }

  // A piece of `work` (any unit) has been finished. A size is judged by as many pieces as it has
  // places, and by 20 ms at least; those begun before it was set do not count. One that does not
  // pay is looked at twice.
  void Advance(int64_t work, MonoTime now);

 private:
  void Judge(double rate);

  int size_;
  const int max_;
  bool is_final_ = false;
  bool is_second_look_ = false;
  double best_rate_ = 0;  // work per second, of the size before
  int skipped_ = 0;       // pieces finished since the size was set, of those that do not count
  std::optional<MonoTime> begin_;
  int64_t work_ = 0;
  int pieces_ = 0;
};

// The places in which files are copied. Thread-safe.
class CopyWindow {
 public:
  // `clock` must outlive the window.
  CopyWindow(int first, int max, const Clock* clock);

  // Waits for a place and returns its number, 0..max-1, the one that was left last; nullopt after
  // Close.
  std::optional<int> Enter();
  void Leave(int place);

  // As AdaptiveSize::Advance.
  void Advance(int64_t work);

  // Nobody enters any more.
  void Close();

  int size() const;

 private:
  const Clock* const clock_;
  mutable Mutex mutex_;
  CondVar left_;
  AdaptiveSize size_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::data

#endif  // WORKER_DATA_COPY_WINDOW_H_
