// One thread that runs closures in order, from a bounded queue.

#ifndef SERVER_RUNTIME_TASK_THREAD_H_
#define SERVER_RUNTIME_TASK_THREAD_H_

#include <cstddef>
#include <deque>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"

#include "common/mutex.h"

namespace assay::runtime {

// Thread-safe. Starts in the constructor; the destructor runs what is queued and joins.
class TaskThread {
 public:
  using Task = absl::AnyInvocable<void()>;

  // `name` is what ps and the debugger show, at most 15 characters.
  TaskThread(std::string name, size_t queue_limit);
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Queues `task`. False, and `task` is dropped, if the queue is full or the thread is stopping.
  [[nodiscard]] bool Post(Task task);

  // Queues `task` whatever the limit, for what ends work and must not be lost; false, and `task` is
  // dropped, only if the thread is stopping. Whoever calls it bounds how often.
  [[nodiscard]] bool PostLimitless(Task task);

  // Runs what is queued, then ends; later Posts are refused. Idempotent.
  void Stop();

 private:
  void Loop();

  // Constant after construction.
  const std::string name_;
  const size_t queue_limit_;

  Mutex mutex_;
  CondVar not_empty_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_TASK_THREAD_H_
