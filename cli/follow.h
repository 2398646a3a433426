// Following what goes on at the coordinator: streams that survive its restart, and `assay wait`.

#ifndef CLI_FOLLOW_H_
#define CLI_FOLLOW_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "assay/v1/submission_service.pb.h"

#include "cli/client.h"
#include "cli/command.h"
#include "cli/context.h"
#include "common/mutex.h"

namespace assay::cli {

struct RunEventQuery {
  std::string run;  // runs/r-901
  int32_t node_rank = 0;
  int64_t after_seq = 0;
  bool follow = true;
  absl::Time deadline = absl::InfiniteFuture();
};

// Calls `on_event` for each event of a run, in order and once, until the run has ended or, without
// `follow`, until the last one stored. Blocks. While the coordinator is away it waits for it and
// goes on after the last event seen.
// CANCELLED after Ctrl-C, DEADLINE_EXCEEDED at the deadline, or the coordinator's error.
absl::Status ForEachRunEvent(const Client& client, Interrupt* interrupt, RunEventQuery query,
                             const std::function<void(const v1::RunEvent&)>& on_event);

// An entry and its runs as they are now, and what has been heard of the runs since.
struct EntryView {
  v1::Submission entry;
  std::vector<v1::Run> runs;
};

// Watches an entry on threads of its own; the owner takes what is new with Next.
class EntryWatcher {
 public:
  struct News {
    bool has_changed = false;          // read the entry and its runs again
    std::vector<v1::RunEvent> events;  // of the runs being watched, log lines and progress
    bool is_interrupted = false;       // Ctrl-C
    absl::Status status;               // not OK: the stream has failed for good
  };

  // `client` and `interrupt` must outlive it.
  EntryWatcher(const Client* client, Interrupt* interrupt, std::string entry);
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
  Interrupt* const interrupt_;
  const std::string entry_;
  Interrupt stop_;  // raised to end the streams
  Mutex mutex_;
  CondVar news_;
  bool has_changed_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<v1::RunEvent> events_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::thread> run_threads_;
  std::thread thread_;
  int interrupt_id_ = 0;
};

// Follows an entry to its end, with a line for each run, and prints the score. kDone if the entry
// is valid, kFailed if not, kTimedOut, or kInterrupted: the runs go on.
absl::StatusOr<ExitStatus> WaitForEntry(Context* context, const Client& client,
                                        const std::string& name, absl::Duration timeout);

std::vector<Command> WaitCommands();

}  // namespace assay::cli

#endif  // CLI_FOLLOW_H_
