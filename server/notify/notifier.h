// All hooks, a thread each: none waits for another, and neither commits nor calls wait for any.

#ifndef SERVER_NOTIFY_NOTIFIER_H_
#define SERVER_NOTIFY_NOTIFIER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "server/notify/delivery.h"
#include "server/runtime/watchers.h"

namespace assay::notify {

struct HookOptions {
  std::string name;  // of its cursor's file, too
  std::vector<std::string> argv;
  std::vector<std::string> patterns;
  absl::Duration timeout;
  absl::Duration retry_for;
};

struct NotifierOptions {
  std::string data_directory;  // cursors are in its folder "notify"
  std::string database_path;
  std::string web_url;
  std::vector<HookOptions> hooks;
};

// Removes the cursors of hooks that are none of `hooks`: one that is configured again later is not
// told what has happened meanwhile.
absl::Status ForgetOtherHooks(const std::string& data_directory,
                              const std::vector<HookOptions>& hooks);

// Thread-safe.
class Notifier {
 public:
  // From now on the hooks are told, from where each was (Delivery). `clock` and `watchers` must
  // outlive it. Errors of Delivery::Open.
  static absl::StatusOr<std::unique_ptr<Notifier>> Start(const NotifierOptions& options,
                                                         const Clock* clock,
                                                         runtime::Watchers* watchers);
  // Kills commands that run: what they were told is told again at the next start.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  std::vector<HookFigures> figures() const;

 private:
  struct Post;  // a hook, its delivery and its thread
  Notifier(const Clock* clock, runtime::Watchers* watchers);
  void Loop(Delivery* delivery);
  // Returns when something was committed after `seen`, or when it is stopping.
  void AwaitCommit(int64_t seen);
  // Returns when `delay` has passed, or when it is stopping.
  void AwaitTime(absl::Duration delay);

  const Clock& clock_;
  runtime::Watchers& watchers_;
  std::atomic<bool> is_stopping_ = false;
  Mutex mutex_;
  CondVar committed_;
  CondVar stopped_;
  int64_t commit_count_ ABSL_GUARDED_BY(mutex_) = 0;
  runtime::Watchers::Ticket ticket_ = 0;
  std::vector<std::unique_ptr<Post>> posts_;  // constant once started
};

}  // namespace assay::notify

#endif  // SERVER_NOTIFY_NOTIFIER_H_
