// How long the files of a job took to stage.

#ifndef WORKER_DATA_FILE_TIMES_H_
#define WORKER_DATA_FILE_TIMES_H_

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

#include "common/mutex.h"

namespace assay::data {

// Thread-safe.
class FileTimes {
 public:
  void Add(absl::Duration time) {
    MutexLock lock(&mutex_);
    seconds_.push_back(static_cast<float>(absl::ToDoubleSeconds(time)));
  }

  // What 99 of 100 do not exceed; zero if there are none.
  absl::Duration P99() {
    MutexLock lock(&mutex_);
    if (seconds_.empty()) return absl::ZeroDuration();
    const auto place = seconds_.begin() + std::ssize(seconds_) * 99 / 100;
    std::nth_element(seconds_.begin(), place, seconds_.end());
    return absl::Seconds(static_cast<double>(*place));
  }

 private:
  Mutex mutex_;
  std::vector<float> seconds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::data

#endif  // WORKER_DATA_FILE_TIMES_H_
