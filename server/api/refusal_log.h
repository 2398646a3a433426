// Calls that were refused for who makes them: counted, told in the daemon's log, and collected for
// the audit.

#ifndef SERVER_API_REFUSAL_LOG_H_
#define SERVER_API_REFUSAL_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "server/auth/identity.h"
#include "server/core/upkeep.h"

namespace assay::api {

// Thread-safe; never blocks for long.
class RefusalLog {
 public:
  // Lines in any ten seconds; what is more is counted in the next line that is written.
  static constexpr int kLinesMax = 20;
  // Kinds of calls that are collected singly; those of further kinds become one.
  static constexpr size_t kKindsMax = 8;

  // `clock` must outlive this.
  explicit RefusalLog(const Clock* clock) : clock_(clock) {}

  // A call of `method` from `peer` was refused for `reason`, which holds no secret: UNAUTHENTICATED
  // or PERMISSION_DENIED; other errors are not the caller's identity and are ignored. `identity`:
  // of whom, if that is known; what the public may not do is no news to the audit. The line that
  // was written; empty if none was.
  std::string Note(absl::string_view peer, absl::string_view method, const absl::Status& reason,
                   const auth::Identity* identity = nullptr);

  // What was refused since the last time this was asked: calls of one kind (by whom, from where,
  // what, why) together.
  std::vector<core::RefusedCalls> Take();

  // Of all, and of those with this code.
  int64_t count() const;
  int64_t count(absl::StatusCode code) const;

 private:
  using Kind = std::tuple<std::string, std::string, std::string, std::string>;
  void Collect(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  mutable Mutex mutex_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t denied_count_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, PERMISSION_DENIED
  int64_t untold_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int line_count_ ABSL_GUARDED_BY(mutex_) = 0;  // since the window began
  MonoTime window_begin_ ABSL_GUARDED_BY(mutex_);
  std::map<Kind, core::RefusedCalls> collected_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::api

#endif  // SERVER_API_REFUSAL_LOG_H_
