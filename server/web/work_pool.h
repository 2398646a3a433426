// A few threads for what blocks: pages, which wait for the coordinator.

#ifndef SERVER_WEB_WORK_POOL_H_
#define SERVER_WEB_WORK_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "common/mutex.h"

namespace assay::web {

// Thread-safe.
class WorkPool {
 public:
  WorkPool(int thread_count, size_t queue_max);
  // As Stop.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Runs `work` on one of the threads, in the order of coming. False if the queue is full, or the
  // pool has stopped: then `work` is not run.
  bool Add(std::function<void()> work);

  // Drops what waits, and blocks until what runs has ended. Idempotent.
  void Stop();

 private:
  void Run();

  const size_t queue_max_;
  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace assay::web

#endif  // SERVER_WEB_WORK_POOL_H_
