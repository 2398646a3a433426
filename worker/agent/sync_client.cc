#include "worker/agent/sync_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/log.h"
#include "common/rpc/status_grpc.h"
#include "worker/agent/back_off.h"

namespace assay::agent {
namespace {

// What the coordinator may take beyond the time that it may hold the call.
constexpr absl::Duration kCallTimeout = absl::Seconds(10);
constexpr absl::Duration kNextDelayMax = absl::Minutes(1);
constexpr size_t kSamplesMax = 100;
// Between two calls that say the same, whatever the coordinator asks for: an order that is answered
// at once, such as STOP while artifacts are on their way, must not become a busy loop.
constexpr absl::Duration kNextDelayMin = absl::Milliseconds(100);

// What makes a request news to the coordinator.
std::string StatusKey(const v1::SynchronizeRequest& request) {
  return request.status().SerializeAsString() + (request.is_leaving() ? "1" : "0");
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

std::chrono::nanoseconds ToChrono(absl::Duration duration) {
  return absl::ToChronoNanoseconds(std::clamp(duration, absl::ZeroDuration(), absl::Hours(1)));
}

}  // namespace

SyncClient::SyncClient(v1::WorkerService::StubInterface* stub, Endpoint endpoint,
                       const Clock* clock, Callbacks callbacks)
    : stub_(stub),
      endpoint_(std::move(endpoint)),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      thread_([this] { Loop(); }) {}

SyncClient::~SyncClient() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    changed_.NotifyAll();
  }
  slot_.Close();
  thread_.join();
}

int64_t SyncClient::Call(v1::SynchronizeRequest request) {
  MutexLock lock(&mutex_);
  const bool is_news = StatusKey(request) != current_status_;
  if (is_news) not_before_ = MonoTime{};
  next_ = Request{++call_count_, std::move(request)};
  changed_.NotifyAll();
  // Under the lock: the thread cannot take the new request before the old call is cancelled.
  if (is_news) slot_.Cancel();
  return call_count_;
}

bool SyncClient::TakeRequest(Request* request) {
  MutexLock lock(&mutex_);
  for (;;) {
    if (is_stopping_) return false;
    if (!next_.has_value()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const absl::Duration early = not_before_ - clock_->Mono();
    if (early <= absl::ZeroDuration()) break;
    changed_.WaitFor(&mutex_, ToChrono(early));
  }
  *request = *std::move(next_);
  next_.reset();
  current_status_ = StatusKey(request->proto);
  return true;
}

bool SyncClient::IsOvertaken() {
  MutexLock lock(&mutex_);
  return is_stopping_ || next_.has_value();
}

bool SyncClient::Pause(absl::Duration duration) {
  const MonoTime end = clock_->Mono() + duration;
  MutexLock lock(&mutex_);
  while (!is_stopping_ && !next_.has_value()) {
    const absl::Duration left = end - clock_->Mono();
    if (left <= absl::ZeroDuration()) return true;
    changed_.WaitFor(&mutex_, ToChrono(left));
  }
  return false;
}

absl::Status SyncClient::Perform(v1::SynchronizeRequest request,
                                 v1::SynchronizeResponse* response) {
  const MonoTime start = clock_->Mono();
  if (const std::optional<OffsetEstimate> best = offset_.Best(start); best.has_value()) {
    request.set_clock_offset_us(best->offset_us);
    request.set_clock_offset_uncertainty_us(best->uncertainty_us);
  }
  grpc::ClientContext context;
  PrepareCall(endpoint_, FromProto(request.poll_timeout()) + kCallTimeout, &context);
  slot_.Enter(&context);
  if (IsOvertaken()) context.TryCancel();  // by a Call that came just before Enter
  const int64_t send_us = absl::ToUnixMicros(clock_->Wall());
  request.set_send_wall_us(send_us);
  const int64_t send_ns = ReadClocks().NodeNs();
  const grpc::Status status = stub_->Synchronize(&context, request, response);
  const ClockReading now = ReadClocks();
  const MonoTime end = clock_->Mono();
  slot_.Leave();
  if (!status.ok()) return FromGrpc(status);
  Sample(send_ns, now, *response);
  // The reply's moment by the monotonic clock: the wall clock may have been set meanwhile.
  const std::optional<OffsetEstimate> estimate =
      EstimateOffset({.send_us = send_us,
                      .server_receive_us = response->receive_wall_us(),
                      .server_send_us = response->send_wall_us(),
                      .receive_us = send_us + absl::ToInt64Microseconds(end - start)});
  if (estimate.has_value()) offset_.Add(*estimate, end);
  return absl::OkStatus();
}

// A coordinator that is older than this tells no such clock.
void SyncClient::Sample(int64_t send_ns, const ClockReading& now,
                        const v1::SynchronizeResponse& response) {
  const std::optional<OffsetEstimate> estimate =
      EstimateOffset({.send_us = send_ns / 1000,
                      .server_receive_us = response.receive_mono_us(),
                      .server_send_us = response.send_mono_us(),
                      .receive_us = now.NodeNs() / 1000});
  MutexLock lock(&mutex_);
  if (!estimate.has_value() || response.boot_id().empty() || samples_.size() >= kSamplesMax) return;
  samples_.push_back({.boot_id = response.boot_id(),
                      .wall_us = now.wall_ns / 1000,
                      .node_ns = now.NodeNs(),
                      .mono_ns = now.mono_ns,
                      .offset_us = estimate->offset_us,
                      .uncertainty_us = estimate->uncertainty_us});
}

std::vector<ClockSample> SyncClient::TakeClockSamples() {
  MutexLock lock(&mutex_);
  return std::exchange(samples_, {});
}

void SyncClient::Finish(const Request& request, const absl::Status& status,
                        const v1::SynchronizeResponse& response) {
  {
    MutexLock lock(&mutex_);
    if (is_stopping_ || next_.has_value()) return;  // overtaken: the next call asks again
    if (status.ok()) {
      not_before_ = clock_->Mono() +
                    std::clamp(FromProto(response.next_delay()), kNextDelayMin, kNextDelayMax);
    } else {
      current_status_.clear();  // the coordinator may not have seen it
    }
  }
  if (status.ok()) {
    failure_count_ = 0;
    callbacks_.on_reply(request.call, response.desired());
    return;
  }
  ++failure_count_;
  if (failure_count_ == 1) LOG(WARNING) << "coordinator not reached: " << status;
  // Who leaves has no time to lose.
  const absl::Duration pause =
      request.proto.is_leaving() ? kBackOffFirst : BackOff(failure_count_, RandomShare());
  if (Pause(pause)) callbacks_.on_failure(request.call, status);
}

void SyncClient::Loop() {
  Request request;
  while (TakeRequest(&request)) {
    v1::SynchronizeResponse response;
    const absl::Status status = Perform(request.proto, &response);
    Finish(request, status, response);
  }
}

}  // namespace assay::agent
