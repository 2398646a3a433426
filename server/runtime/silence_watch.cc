#include "server/runtime/silence_watch.h"

#include <pthread.h>

#include <chrono>
#include <utility>

namespace assay::runtime {

void SilenceWatch::Turn::GiveToPeer() {
  MutexLock lock(&mutex_);
  if (whose_ == Whose::kOver) return;
  whose_ = Whose::kPeers;
  since_ = clock_->Mono();
}

bool SilenceWatch::Turn::TakeBack() {
  MutexLock lock(&mutex_);
  if (whose_ == Whose::kOver) return false;
  whose_ = Whose::kOurs;
  return true;
}

void SilenceWatch::Turn::EndIfSilent(absl::Duration limit) {
  {
    MutexLock lock(&mutex_);
    if (whose_ != Whose::kPeers || clock_->Mono() - since_ < limit) return;
    whose_ = Whose::kOver;
  }
  on_silence_();
}

SilenceWatch::SilenceWatch(const Clock* clock) : clock_(clock), thread_([this] { Loop(); }) {}

SilenceWatch::~SilenceWatch() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    wake_.NotifyOne();
  }
  thread_.join();
}

std::shared_ptr<SilenceWatch::Turn> SilenceWatch::Watch(absl::AnyInvocable<void()> on_silence) {
  std::shared_ptr<Turn> turn(new Turn(clock_, std::move(on_silence)));
  MutexLock lock(&mutex_);
  turns_.push_back(turn);
  return turn;
}

void SilenceWatch::Look() {
  std::vector<std::shared_ptr<Turn>> turns;
  {
    MutexLock lock(&mutex_);
    std::erase_if(turns_, [](const std::weak_ptr<Turn>& turn) { return turn.expired(); });
    for (const std::weak_ptr<Turn>& turn : turns_)
      if (std::shared_ptr<Turn> alive = turn.lock(); alive != nullptr)
        turns.push_back(std::move(alive));
  }
  for (const std::shared_ptr<Turn>& turn : turns)
    turn->EndIfSilent(kLimit);
}

void SilenceWatch::Loop() {
  pthread_setname_np(pthread_self(), "silence");
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (!is_stopping_) wake_.WaitFor(&mutex_, std::chrono::seconds(1));
      if (is_stopping_) return;
    }
    Look();
  }
}

}  // namespace assay::runtime
