// The call that a thread is blocked in, so that another thread can end it.

#ifndef WORKER_AGENT_CALL_SLOT_H_
#define WORKER_AGENT_CALL_SLOT_H_

#include <grpcpp/client_context.h>

#include "absl/base/thread_annotations.h"

#include "common/mutex.h"

namespace assay::agent {

// Thread-safe.
class CallSlot {
 public:
  // `context` is in use until Leave. After Close every call that enters is cancelled at once.
  void Enter(grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    context_ = context;
    if (is_closed_) context_->TryCancel();
  }
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    context_ = nullptr;
  }
  // Ends the call under way, if any, with CANCELLED.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }
  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    is_closed_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }

 private:
  Mutex mutex_;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_CALL_SLOT_H_
