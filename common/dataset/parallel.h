// Long operations over many files: spread over threads, with progress reported in one place.

#ifndef COMMON_DATASET_PARALLEL_H_
#define COMMON_DATASET_PARALLEL_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "common/mutex.h"

namespace assay::dataset {

// How far a long operation over files is.
struct Progress {
  int64_t files = 0;
  int64_t files_total = 0;
  int64_t bytes = 0;  // stored bytes so far
};

// Calls come one at a time, from any thread, with counts that never fall; keep it short.
using ProgressCallback = absl::AnyInvocable<void(const Progress&)>;

// Counts finished files and tells the callback. Thread-safe.
class ProgressMeter {
 public:
  ProgressMeter(int64_t files_total, ProgressCallback callback);

  // One more file of `bytes` is finished.
  void AddFile(int64_t bytes);

  Progress total() const;

 private:
  mutable Mutex mutex_;
  ProgressCallback callback_ ABSL_GUARDED_BY(mutex_);
  Progress progress_ ABSL_GUARDED_BY(mutex_);
};

// Calls body(thread, index) for every index in 0..count-1, on `threads` threads (at least one, at
// most one per index); `thread` is 0..threads-1 and never runs twice at once. After an error no
// further index is begun; returns the error of the lowest index that failed. Blocks.
absl::Status ForEachIndex(int64_t count, int threads,
                          absl::FunctionRef<absl::Status(int thread, int64_t index)> body);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_PARALLEL_H_
