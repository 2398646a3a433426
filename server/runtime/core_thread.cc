#include "server/runtime/core_thread.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/time.h"

#include "common/log.h"
#include "server/store/store.h"

namespace assay::runtime {
namespace {

// However long a commit takes on a disk that is slow or busy.
constexpr absl::Duration kGatherMax = absl::Milliseconds(2);

void BecomeRealtime() {
  sched_param parameters = {};
  parameters.sched_priority = 1;
  const int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
  LOG(INFO) << "core_thread realtime=" << (error == 0 ? "yes" : "no (needs CAP_SYS_NICE)");
}

}  // namespace

CoreThread::CoreThread(const Parts& parts, store::Checkpointer* checkpointer, core::Core core,
                       EffectSink effects, const CoreThreadOptions& options)
    : checkpointer_(checkpointer),
      options_(options),
      loop_(
          parts, std::move(core), std::move(effects), [this] { BeginCheckpoint(); }, options.loop),
      queue_(options.queue_limit) {}

CoreThread::~CoreThread() {
  Stop();
}

void CoreThread::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void CoreThread::Post(core::Command command, Callback callback, IsAwaited is_awaited) {
  QueuedCommand item{std::move(command), std::move(callback), std::move(is_awaited)};
  absl::Status status = loop_.CheckRoomFor(item.command);
  if (status.ok()) {
    MutexLock lock(&mutex_);
    status = queue_.Push(&item);
    if (status.ok() && queue_.size() >= wake_size_) wake_.NotifyOne();
  }
  if (!status.ok()) item.callback(std::move(status));
}

size_t CoreThread::queue_length() const {
  MutexLock lock(&mutex_);
  return queue_.size();
}

void CoreThread::Poke() {
  MutexLock lock(&mutex_);
  is_poked_ = true;
  wake_.NotifyOne();
}

void CoreThread::Stop() {
  {
    MutexLock lock(&mutex_);
    queue_.Close();
    wake_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
  checkpoint_thread_.Stop();
}

std::vector<QueuedCommand> CoreThread::Take() {
  const absl::Duration wait = loop_.TimeToWait();
  MutexLock lock(&mutex_);
  if (queue_.is_empty() && !is_poked_ && !queue_.is_closed())
    wake_.WaitFor(&mutex_, absl::ToChronoNanoseconds(wait));
  is_poked_ = false;
  if (!queue_.is_empty()) Gather();
  std::vector<QueuedCommand> batch = queue_.Take(options_.batch_max);
  last_batch_size_ = batch.size();
  return batch;
}

void CoreThread::Gather() {
  if (queue_.size() >= last_batch_size_ || queue_.is_closed()) return;
  const absl::Duration wait = std::min(loop_.last_commit() / 2, kGatherMax);
  wake_size_ = last_batch_size_;
  wake_.WaitFor(&mutex_, absl::ToChronoNanoseconds(wait));
  wake_size_ = 0;
}

void CoreThread::Loop() {
  pthread_setname_np(pthread_self(), "core");
  if (options_.is_realtime_wanted) BecomeRealtime();
  while (true) {
    std::vector<QueuedCommand> batch = Take();
    const bool is_idle = batch.empty();
    loop_.HandleBatch(std::move(batch));
    MutexLock lock(&mutex_);
    if (is_idle && queue_.is_closed() && queue_.is_empty()) break;
  }
  loop_.AnswerAllParked();
}

void CoreThread::BeginCheckpoint() {
  // Refused while one is queued already: it will see these frames too.
  [[maybe_unused]] const bool is_taken =
      checkpoint_thread_.Post([loop = &loop_, checkpointer = checkpointer_] {
        // Unavailable: another connection is at it.
        const absl::StatusOr<int64_t> left = checkpointer->Run();
        if (left.ok() && *left < store::Checkpointer::kFewFrames) loop->FinishCheckpoint();
        if (!left.ok() && !absl::IsUnavailable(left.status()))
          LOG(WARNING) << "checkpoint status=" << Quoted(left.status());
      });
}

}  // namespace assay::runtime
