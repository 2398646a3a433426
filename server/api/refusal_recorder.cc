#include "server/api/refusal_recorder.h"

#include <pthread.h>

#include <chrono>
#include <string>
#include <utility>

#include "common/log.h"

namespace assay::api {
namespace {

constexpr std::chrono::seconds kInterval(10);

}  // namespace

RefusalRecorder::RefusalRecorder(RefusalLog* refusals, runtime::CoreThread* core)
    : refusals_(refusals), core_(core), thread_([this] { Loop(); }) {}

RefusalRecorder::~RefusalRecorder() {
  Stop();
}

void RefusalRecorder::Stop() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    stopped_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

bool RefusalRecorder::Pause() {
  MutexLock lock(&mutex_);
  if (!is_stopping_) stopped_.WaitFor(&mutex_, kInterval);
  return !is_stopping_;
}

void RefusalRecorder::Record() {
  for (core::RefusedCalls& calls : refusals_->Take()) {
    // The row is of who was refused, so that a person's history has it.
    std::string principal =
        calls.principal.empty() ? std::string(core::kCoordinator) : calls.principal;
    core_->Post({.principal = std::move(principal), .body = core::RecordRefusal{std::move(calls)}},
                [](const absl::StatusOr<core::Reply>& reply) {
                  if (!reply.ok())
                    LOG(WARNING) << "refused calls not in the audit status="
                                 << Quoted(reply.status());
                });
  }
}

void RefusalRecorder::Loop() {
  pthread_setname_np(pthread_self(), "refusals");
  bool is_going = true;
  while (is_going) {
    is_going = Pause();
    Record();
  }
}

}  // namespace assay::api
