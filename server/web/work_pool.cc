#include "server/web/work_pool.h"

#include <utility>

namespace assay::web {

WorkPool::WorkPool(int thread_count, size_t queue_max) : queue_max_(queue_max) {
  for (int i = 0; i < thread_count; ++i)
    threads_.emplace_back([this] { Run(); });
}

WorkPool::~WorkPool() {
  Stop();
}

bool WorkPool::Add(std::function<void()> work) {
  {
    const MutexLock lock(&mutex_);
    if (is_stopping_ || queue_.size() >= queue_max_) return false;
    queue_.push_back(std::move(work));
  }
  wake_.NotifyOne();
  return true;
}

void WorkPool::Stop() {
  std::deque<std::function<void()>> dropped;
  {
    const MutexLock lock(&mutex_);
    is_stopping_ = true;
    dropped.swap(queue_);
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void WorkPool::Run() {
  while (true) {
    std::function<void()> work;
    {
      const MutexLock lock(&mutex_);
      while (queue_.empty() && !is_stopping_)
        wake_.Wait(&mutex_);
      if (is_stopping_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace assay::web
