// Who wants to know that events were committed.
//
// A watcher of the event log is the tail of a table: it remembers the last seq that it has sent,
// and asks Queries for what follows whenever it is told that there is more. Here is the telling.

#ifndef SERVER_RUNTIME_WATCHERS_H_
#define SERVER_RUNTIME_WATCHERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"

#include "common/mutex.h"
#include "server/core/types.h"

namespace assay::runtime {

// Thread-safe.
class Watchers {
 public:
  // Called on the core thread after a commit: must not block nor call back into Watchers.
  //   committed_seq: the last event of the log that is durable.
  using Callback = absl::AnyInvocable<void(int64_t committed_seq)>;
  using Ticket = int64_t;

  // From now on calls `callback` after each commit that concerns `submission` (its runs included;
  // their log lines count), or after every commit if it is none. Ask Queries once after
  // subscribing: what was committed before is not told.
  Ticket Subscribe(core::SubmissionId submission, Callback callback);

  // No call of the callback begins after this returns; one in progress is waited for. Unknown
  // tickets are ignored. Not to be called from a callback, nor under a lock that one takes.
  void Unsubscribe(Ticket ticket);

  // Events up to `committed_seq` are durable; `submissions` are those that the new ones concern.
  void Committed(int64_t committed_seq, const std::vector<core::SubmissionId>& submissions);

  // The last seq told to Committed; 0 before the first.
  int64_t committed_seq() const;

 private:
  struct Watcher {
    core::SubmissionId submission;
    Callback callback;
  };

  mutable Mutex mutex_;
  int64_t committed_seq_ ABSL_GUARDED_BY(mutex_) = 0;
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Ticket, Watcher> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_WATCHERS_H_
