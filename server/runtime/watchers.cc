#include "server/runtime/watchers.h"

#include <algorithm>
#include <utility>

namespace assay::runtime {

Watchers::Ticket Watchers::Subscribe(core::SubmissionId submission, Callback callback) {
  MutexLock lock(&mutex_);
  watchers_.emplace(++last_ticket_, Watcher{submission, std::move(callback)});
  return last_ticket_;
}

void Watchers::Unsubscribe(Ticket ticket) {
  MutexLock lock(&mutex_);
  watchers_.erase(ticket);
}

void Watchers::Committed(int64_t committed_seq,
                         const std::vector<core::SubmissionId>& submissions) {
  // Called under the lock, so that Unsubscribe can promise that no call follows it.
  MutexLock lock(&mutex_);
  committed_seq_ = committed_seq;
  for (auto& [ticket, watcher] : watchers_) {
    const bool is_concerned =
        watcher.submission.is_none() ||
        std::find(submissions.begin(), submissions.end(), watcher.submission) != submissions.end();
    if (is_concerned) watcher.callback(committed_seq);
  }
}

int64_t Watchers::committed_seq() const {
  MutexLock lock(&mutex_);
  return committed_seq_;
}

}  // namespace assay::runtime
