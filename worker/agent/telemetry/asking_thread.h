// Who may take long to answer, or hang, is asked in a thread of its own, so that no sample waits
// longer than it wants to. Of a thread that hangs nothing is freed.

#ifndef WORKER_AGENT_TELEMETRY_ASKING_THREAD_H_
#define WORKER_AGENT_TELEMETRY_ASKING_THREAD_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"

#include "common/mutex.h"

namespace assay::agent {

// Not thread-safe: one thread takes what the other answers.
template <class Answer>
class AskingThread {
 public:
  using Ask = std::function<Answer()>;

  // `make` and what it returns are called in the thread. At the end it is waited for as long as
  // `end_patience`; longer than that nobody waits.
  AskingThread(std::function<Ask()> make, std::chrono::milliseconds end_patience)
      : end_patience_(end_patience) {
    std::thread(Run, desk_, std::move(make)).detach();
  }
  ~AskingThread() { desk_->End(end_patience_); }
  AskingThread(const AskingThread&) = delete;
  AskingThread& operator=(const AskingThread&) = delete;

  // Asks, and waits for the answer. nullopt if it does not come in time, or that to an earlier
  // question is not there yet.
  std::optional<Answer> AskAndWait(std::chrono::milliseconds patience) {
    return desk_->Pose() ? desk_->Take(patience) : std::nullopt;
  }

  // The answer to the question of the call before, and asks the next. nullopt if it is not there
  // yet; then nothing is asked. No answer is lost.
  std::optional<Answer> TakeAndAsk() { return desk_->TakeAndPose(); }

 private:
  // What both threads share.
  class Desk {
   public:
    // False if it has not answered what it was asked before.
    bool Pose() {
      MutexLock lock(&mutex_);
      if (answered_ < asked_) return false;
      ++asked_;
      changed_.NotifyAll();
      return true;
    }
    // In one: an answer that came between the two would be lost to the next one.
    std::optional<Answer> TakeAndPose() {
      MutexLock lock(&mutex_);
      if (answered_ < asked_) return std::nullopt;
      ++asked_;
      changed_.NotifyAll();
      return std::exchange(answer_, std::nullopt);
    }
    // What was answered and not taken yet.
    std::optional<Answer> Take(std::chrono::milliseconds patience) {
      const auto deadline = std::chrono::steady_clock::now() + patience;
      MutexLock lock(&mutex_);
      while (answered_ < asked_) {
        const auto left = deadline - std::chrono::steady_clock::now();
        if (left <= left.zero() || !changed_.WaitFor(&mutex_, left)) break;
      }
      if (answered_ < asked_) return std::nullopt;
      return std::exchange(answer_, std::nullopt);
    }
    void End(std::chrono::milliseconds patience) {
      const auto deadline = std::chrono::steady_clock::now() + patience;
      MutexLock lock(&mutex_);
      is_over_ = true;
      changed_.NotifyAll();
      while (!has_ended_) {
        const auto left = deadline - std::chrono::steady_clock::now();
        if (left <= left.zero() || !changed_.WaitFor(&mutex_, left)) return;
      }
    }

    // Of the thread. False: there are no questions any more.
    bool AwaitQuestion() {
      MutexLock lock(&mutex_);
      while (answered_ == asked_ && !is_over_)
        changed_.Wait(&mutex_);
      return !is_over_;
    }
    void Answered(Answer answer) {
      MutexLock lock(&mutex_);
      answer_ = std::move(answer);
      answered_ = asked_;
      changed_.NotifyAll();
    }
    void Ended() {
      MutexLock lock(&mutex_);
      has_ended_ = true;
      changed_.NotifyAll();
    }

   private:
    Mutex mutex_;
    CondVar changed_;
    int64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
    int64_t answered_ ABSL_GUARDED_BY(mutex_) = 0;
    bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
    bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
    std::optional<Answer> answer_ ABSL_GUARDED_BY(mutex_);
  };

  static void Run(const std::shared_ptr<Desk>& desk, const std::function<Ask()>& make) {
    {
      const Ask ask = make();
      while (desk->AwaitQuestion())
        desk->Answered(ask());
    }  // what it asks with is gone before it is said that it is
    desk->Ended();
  }

  const std::chrono::milliseconds end_patience_;
  const std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_ASKING_THREAD_H_
