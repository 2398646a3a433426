// Watching what goes on at the coordinator: streams that survive its restart.

#ifndef COMMON_CLIENT_WATCH_H_
#define COMMON_CLIENT_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "assay/v1/submission_service.pb.h"

#include "common/client/cancellation.h"
#include "common/client/client.h"
#include "common/mutex.h"

namespace assay::client {

struct RunEventQuery {
  std::string run;  // runs/r-901
  int32_t node_rank = 0;
  int64_t after_seq = 0;
  bool follow = true;
  absl::Time deadline = absl::InfiniteFuture();
};

// Calls `on_event` for each event of a run, in order and once, until the run has ended or, without
// `follow`, until the last one stored. Blocks. While the coordinator is away it waits for it and
// goes on after the last event seen. Of a run that nobody watched, as an imported one, the lines of
// its log are the events, without stamps.
// CANCELLED once `cancellation` is raised, DEADLINE_EXCEEDED at the deadline, or the coordinator's
// error.
absl::Status ForEachRunEvent(const Client& client, Cancellation* cancellation, RunEventQuery query,
                             const std::function<void(const v1::RunEvent&)>& on_event);

// Watches an entry on threads of its own; the owner takes what is new with Next. Its methods are
// for one thread.
class EntryWatcher {
 public:
  struct News {
    bool has_changed = false;          // read the entry and its runs again
    std::vector<v1::RunEvent> events;  // of the runs being watched, log lines and progress
    bool is_cancelled = false;         // raised
    absl::Status status;               // not OK: the stream has failed for good
  };

  // `client` and `cancellation` must outlive it. `entry`: "submissions/e-42", or "" for everything
  // that happens at the coordinator.
  EntryWatcher(const Client* client, Cancellation* cancellation, std::string entry);
  // Stops all streams.
  ~EntryWatcher();
  EntryWatcher(const EntryWatcher&) = delete;
  EntryWatcher& operator=(const EntryWatcher&) = delete;

  // Also listens to the events of this run, from rank 0's node. Idempotent.
  void WatchRun(const std::string& run);

  // Waits until there is news, or for `patience`.
  News Next(absl::Duration patience);

 private:
  void WatchEntry();
  void Push(const v1::RunEvent& event);
  void Fail(const absl::Status& status);

  const Client* const client_;
  Cancellation* const cancellation_;
  const std::string entry_;
  Cancellation stop_;  // raised to end the streams
  Mutex mutex_;
  CondVar news_;
  bool has_changed_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<v1::RunEvent> events_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::thread> run_threads_;
  std::thread thread_;
  int action_id_ = 0;
};

}  // namespace assay::client

#endif  // COMMON_CLIENT_WATCH_H_
