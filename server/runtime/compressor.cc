#include "server/runtime/compressor.h"

#include <pthread.h>
#include <sys/resource.h>

#include <chrono>
#include <utility>

#include "common/log.h"
#include "server/store/compression.h"

namespace assay::runtime {
namespace {

constexpr int kNice = 19;
constexpr std::chrono::seconds kInterval(10);

}  // namespace

Compressor::Compressor(std::unique_ptr<store::Compression> compression)
    : compression_(std::move(compression)), thread_([this] { Loop(); }) {}

Compressor::~Compressor() {
  Stop();
}

void Compressor::Stop() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    stopped_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

bool Compressor::Work() {
  const absl::StatusOr<bool> is_more = compression_->Step();
  if (!is_more.ok()) LOG(WARNING) << "compression waits status=" << Quoted(is_more.status());
  return is_more.ok() && *is_more;
}

bool Compressor::Pause(bool is_busy) {
  MutexLock lock(&mutex_);
  if (!is_busy && !is_stopping_) stopped_.WaitFor(&mutex_, kInterval);
  return !is_stopping_;
}

void Compressor::Loop() {
  pthread_setname_np(pthread_self(), "compress");
  // Of this thread alone.
  if (setpriority(PRIO_PROCESS, 0, kNice) != 0) LOG(WARNING) << "compression: cannot be nice";
  int64_t told_count = 0;
  bool is_busy = true;
  while (Pause(is_busy)) {
    is_busy = Work();
    const store::CompressionCounts& counts = compression_->counts();
    if (is_busy || counts.file_count == told_count) continue;
    told_count = counts.file_count;
    LOG(INFO) << "compressed files=" << counts.file_count << " saved_bytes=" << counts.saved_bytes;
  }
}

}  // namespace assay::runtime
