#include "common/client/cancellation.h"

namespace assay::client {

void Cancellation::Raise() {
  is_raised_ = true;
  MutexLock lock(&mutex_);
  for (const auto& [id, action] : actions_)
    action();
}

int Cancellation::Add(std::function<void()> action) {
  MutexLock lock(&mutex_);
  const int id = next_id_++;
  if (is_raised_) action();
  actions_[id] = std::move(action);
  return id;
}

void Cancellation::Remove(int id) {
  MutexLock lock(&mutex_);
  actions_.erase(id);
}

}  // namespace assay::client
