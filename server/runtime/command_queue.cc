#include "server/runtime/command_queue.h"

#include <utility>

namespace assay::runtime {

absl::Status CommandQueue::Push(QueuedCommand* item) {
  const core::Command& command = item->command;
  const bool is_ours = command.principal == core::kCoordinator && command.standing.role.empty();
  if (is_closed_) return absl::UnavailableError("the coordinator is stopping; retry later");
  if (!is_ours && items_.size() >= limit_)
    return absl::ResourceExhaustedError("too many requests wait; retry later");
  items_.push_back(std::move(*item));
  return absl::OkStatus();
}

std::vector<QueuedCommand> CommandQueue::Take(size_t count_max) {
  std::vector<QueuedCommand> batch;
  while (!items_.empty() && batch.size() < count_max) {
    batch.push_back(std::move(items_.front()));
    items_.pop_front();
  }
  return batch;
}

}  // namespace assay::runtime
