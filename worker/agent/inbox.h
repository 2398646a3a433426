// Inputs for the agent's loop from other threads, and the descriptor that wakes it.

#ifndef WORKER_AGENT_INBOX_H_
#define WORKER_AGENT_INBOX_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "common/file.h"
#include "common/log.h"
#include "common/mutex.h"
#include "worker/agent/machine.h"

namespace assay::agent {

// Thread-safe. Bounded by its senders: each has at most one message under way per call it makes.
class Inbox {
 public:
  Inbox() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { CHECK(fd_.is_open()) << "eventfd"; }

  // Readable while something waits.
  int fd() const { return fd_.get(); }

  void Post(Input input) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    inputs_.push_back(std::move(input));
    const uint64_t one = 1;
    CHECK(write(fd_.get(), &one, sizeof(one)) == sizeof(one)) << "eventfd";
  }

  std::vector<Input> TakeAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    uint64_t count = 0;
    // Nothing to read is fine: nothing waits then.
    if (read(fd_.get(), &count, sizeof(count)) < 0) return {};
    return std::exchange(inputs_, {});
  }

 private:
  const UniqueFd fd_;
  Mutex mutex_;
  std::vector<Input> inputs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_INBOX_H_
