// Ctrl-C while a command waits: the wait ends, what was submitted goes on.

#ifndef CLI_INTERRUPT_H_
#define CLI_INTERRUPT_H_

#include <atomic>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "common/mutex.h"

namespace assay::cli {

// Thread-safe. Signals are taken over only between Listen and the end, so that all other commands
// die of Ctrl-C as any program does.
class Interrupt {
 public:
  Interrupt() = default;
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Takes over SIGINT and SIGTERM. Call before any other thread starts: they inherit the mask.
  void Listen();

  // As if the signal had come.
  void Raise();

  bool IsRaised() const { return is_raised_.load(); }

  // Calls `action` on another thread when the signal comes; at once if it has come. The action must
  // not call this object. Returns a number for Remove, after which the action is not running.
  int Add(std::function<void()> action);
  void Remove(int id);

 private:
  std::atomic<bool> is_raised_ = false;
  Mutex mutex_;
  int next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int, std::function<void()>> actions_ ABSL_GUARDED_BY(mutex_);
  std::thread listener_;
  int stop_fd_ = -1;
};

// An action for as long as the object lives.
class ScopedInterrupt {
 public:
  ScopedInterrupt(Interrupt* interrupt, std::function<void()> action)
      : interrupt_(interrupt), id_(interrupt->Add(std::move(action))) {}
  ~ScopedInterrupt() { interrupt_->Remove(id_); }
  ScopedInterrupt(const ScopedInterrupt&) = delete;
  ScopedInterrupt& operator=(const ScopedInterrupt&) = delete;

 private:
  Interrupt* const interrupt_;
  const int id_;
};

}  // namespace assay::cli

#endif  // CLI_INTERRUPT_H_
