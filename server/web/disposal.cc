#include "server/web/disposal.h"

#include <utility>

namespace assay::web {

Disposal::~Disposal() {
  {
    const MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void Disposal::Add(std::shared_ptr<void> object) {
  {
    const MutexLock lock(&mutex_);
    objects_.push_back(std::move(object));
  }
  wake_.NotifyOne();
}

void Disposal::Run() {
  while (true) {
    std::vector<std::shared_ptr<void>> objects;
    {
      const MutexLock lock(&mutex_);
      while (objects_.empty() && !is_stopping_)
        wake_.Wait(&mutex_);
      if (objects_.empty()) return;
      objects.swap(objects_);
    }
    // Destroyed here, without the lock.
  }
}

}  // namespace assay::web
