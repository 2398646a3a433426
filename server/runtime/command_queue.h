// The commands that wait for the core, in the order in which they came.

#ifndef SERVER_RUNTIME_COMMAND_QUEUE_H_
#define SERVER_RUNTIME_COMMAND_QUEUE_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/core/command.h"

namespace assay::runtime {

using ReplyCallback = absl::AnyInvocable<void(absl::StatusOr<core::Reply>)>;

// False once nobody waits for a call's answer any more: its connection is gone, or it was given up.
// Called until the call's callback is. Empty: somebody always does.
using IsAwaited = absl::AnyInvocable<bool()>;

// A command, and whom to tell what came of it.
struct QueuedCommand {
  core::Command command;
  ReplyCallback callback;
  IsAwaited is_awaited = {};
};

// Not thread-safe.
class CommandQueue {
 public:
  // `limit`: commands that may wait.
  explicit CommandQueue(size_t limit) : limit_(limit) {}

  // Takes `item`, or leaves it as it is: UNAVAILABLE once closed, RESOURCE_EXHAUSTED if it is full.
  // What the coordinator posts itself is never refused for lack of room: there is little of it and
  // it ends work.
  absl::Status Push(QueuedCommand* item);

  // The next batch: the first `count_max` that wait, or fewer.
  std::vector<QueuedCommand> Take(size_t count_max);

  // Takes no more. What waits can still be taken.
  void Close() { is_closed_ = true; }

  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  bool is_closed() const { return is_closed_; }

 private:
  const size_t limit_;
  std::deque<QueuedCommand> items_;
  bool is_closed_ = false;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_COMMAND_QUEUE_H_
