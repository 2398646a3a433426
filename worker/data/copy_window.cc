#include "worker/data/copy_window.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace assay::data {
namespace {

constexpr double kGrowthThatPays = 1.1;
constexpr absl::Duration kJudgedFor = absl::Milliseconds(20);

}  // namespace

void AdaptiveSize::Advance(int64_t work, MonoTime now) {
  if (is_final_) return;
  if (!begin_.has_value()) {
    if (++skipped_ >= size_) begin_ = now;
    return;
  }
  work_ += work;
  ++pieces_;
  const absl::Duration elapsed = now - *begin_;
  if (pieces_ < size_ || elapsed < kJudgedFor) return;
  Judge(static_cast<double>(work_) / absl::ToDoubleSeconds(elapsed));
  if (is_second_look_) begin_ = now;
  work_ = 0;
  pieces_ = 0;
}

void AdaptiveSize::Judge(double rate) {
  if (rate >= kGrowthThatPays * best_rate_) {
    is_final_ = 2 * size_ > max_;
    if (!is_final_) size_ *= 2;
    best_rate_ = rate;
    is_second_look_ = false;
    skipped_ = 0;
    begin_.reset();
  } else if (!is_second_look_) {
    is_second_look_ = true;
  } else {
    is_final_ = true;
    size_ /= 2;
  }
}

CopyWindow::CopyWindow(int first, int max, const Clock* clock) : clock_(clock), size_(first, max) {
  for (int place = max - 1; place >= 0; --place)
    free_.push_back(place);
}

std::optional<int> CopyWindow::Enter() {
  MutexLock lock(&mutex_);
  while (!is_closed_ && taken_ >= size_.size())
    left_.Wait(&mutex_);
  if (is_closed_) return std::nullopt;
  ++taken_;
  const int place = free_.back();
  free_.pop_back();
  return place;
}

void CopyWindow::Leave(int place) {
  MutexLock lock(&mutex_);
  --taken_;
  free_.push_back(place);
  left_.NotifyOne();
}

void CopyWindow::Advance(int64_t work) {
  MutexLock lock(&mutex_);
  const int before = size_.size();
  size_.Advance(work, clock_->Mono());
  if (size_.size() > before) left_.NotifyAll();
}

void CopyWindow::Close() {
  MutexLock lock(&mutex_);
  is_closed_ = true;
  left_.NotifyAll();
}

int CopyWindow::size() const {
  MutexLock lock(&mutex_);
  return size_.size();
}

}  // namespace assay::data
