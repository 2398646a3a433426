// Calls that were refused for who makes them: counted, and told in the log, never in the database.

#ifndef SERVER_API_REFUSAL_LOG_H_
#define SERVER_API_REFUSAL_LOG_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/mutex.h"

namespace assay::api {

// Thread-safe; never blocks for long.
class RefusalLog {
 public:
  // Lines in any ten seconds; what is more is counted in the next line that is written.
  static constexpr int kLinesMax = 20;

  // `clock` must outlive this.
  explicit RefusalLog(const Clock* clock) : clock_(clock) {}

  // A call of `method` from `peer` was refused for `reason`, which holds no secret: UNAUTHENTICATED
  // or PERMISSION_DENIED; other errors are not the caller's identity and are ignored. The line that
  // was written; empty if none was.
  std::string Note(absl::string_view peer, absl::string_view method, const absl::Status& reason);

  // Of all, and of those with this code.
  int64_t count() const;
  int64_t count(absl::StatusCode code) const;

 private:
  const Clock* const clock_;
  mutable Mutex mutex_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t denied_count_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, PERMISSION_DENIED
  int64_t untold_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int line_count_ ABSL_GUARDED_BY(mutex_) = 0;  // since the window began
  MonoTime window_begin_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::api

#endif  // SERVER_API_REFUSAL_LOG_H_
