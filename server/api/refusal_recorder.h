// Writes refused calls into the log of events, so that the audit has them beside what was done.

#ifndef SERVER_API_REFUSAL_RECORDER_H_
#define SERVER_API_REFUSAL_RECORDER_H_

#include <thread>

#include "absl/base/thread_annotations.h"

#include "common/mutex.h"
#include "server/api/refusal_log.h"
#include "server/runtime/core_thread.h"

namespace assay::api {

// Every ten seconds, and when it ends, an event for each kind of calls that were refused since; a
// crash loses those of its last ten seconds, which the daemon's log has. Thread-safe.
class RefusalRecorder {
 public:
  // Both must outlive this.
  RefusalRecorder(RefusalLog* refusals, runtime::CoreThread* core);
  ~RefusalRecorder();  // as Stop
  RefusalRecorder(const RefusalRecorder&) = delete;
  RefusalRecorder& operator=(const RefusalRecorder&) = delete;

  // Hands over what there is; before the core stops. Idempotent.
  void Stop();

 private:
  void Loop();
  void Record();
  // Until there may be more; false if it is to stop.
  bool Pause();

  RefusalLog* const refusals_;
  runtime::CoreThread* const core_;

  Mutex mutex_;
  CondVar stopped_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace assay::api

#endif  // SERVER_API_REFUSAL_RECORDER_H_
