// Ending what waits: streams and long waits watch a Cancellation, and whoever has it may raise it.

#ifndef COMMON_CLIENT_CANCELLATION_H_
#define COMMON_CLIENT_CANCELLATION_H_

#include <atomic>
#include <functional>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"

#include "common/mutex.h"

namespace assay::client {

// Raised once and for ever. Thread-safe.
class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void Raise();

  bool IsRaised() const { return is_raised_.load(); }

  // Calls `action` on the thread that raises; at once if it is raised. The action must not call
  // this object. Returns a number for Remove, after which the action is not running.
  int Add(std::function<void()> action);
  void Remove(int id);

 private:
  std::atomic<bool> is_raised_ = false;
  Mutex mutex_;
  int next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int, std::function<void()>> actions_ ABSL_GUARDED_BY(mutex_);
};

// An action for as long as the object lives.
class ScopedCancelAction {
 public:
  ScopedCancelAction(Cancellation* cancellation, std::function<void()> action)
      : cancellation_(cancellation), id_(cancellation->Add(std::move(action))) {}
  ~ScopedCancelAction() { cancellation_->Remove(id_); }
  ScopedCancelAction(const ScopedCancelAction&) = delete;
  ScopedCancelAction& operator=(const ScopedCancelAction&) = delete;

 private:
  Cancellation* const cancellation_;
  const int id_;
};

}  // namespace assay::client

#endif  // COMMON_CLIENT_CANCELLATION_H_
