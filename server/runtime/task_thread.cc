#include "server/runtime/task_thread.h"

#include <pthread.h>

#include <utility>

namespace assay::runtime {

TaskThread::TaskThread(std::string name, size_t queue_limit)
    : name_(std::move(name)), queue_limit_(queue_limit), thread_([this] { Loop(); }) {}

TaskThread::~TaskThread() {
  Stop();
}

bool TaskThread::Post(Task task) {
  MutexLock lock(&mutex_);
  if (is_stopping_ || queue_.size() >= queue_limit_) return false;
  queue_.push_back(std::move(task));
  not_empty_.NotifyOne();
  return true;
}

bool TaskThread::PostLimitless(Task task) {
  MutexLock lock(&mutex_);
  if (is_stopping_) return false;
  queue_.push_back(std::move(task));
  not_empty_.NotifyOne();
  return true;
}

void TaskThread::Stop() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    not_empty_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void TaskThread::Loop() {
  pthread_setname_np(pthread_self(), name_.c_str());
  while (true) {
    Task task;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !is_stopping_)
        not_empty_.Wait(&mutex_);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

}  // namespace assay::runtime
