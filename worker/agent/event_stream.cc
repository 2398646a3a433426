#include "worker/agent/event_stream.h"

#include <utility>

#include "absl/time/time.h"

#include "common/rpc/status_grpc.h"
#include "common/status.h"

namespace assay::agent {
namespace {

// Every call has a deadline. A stream that meets its own is simply opened again.
constexpr absl::Duration kStreamTimeout = absl::Hours(1);

}  // namespace

EventStream::EventStream(v1::WorkerService::StubInterface* stub, const Endpoint& endpoint,
                         Source source, CallSlot* slot)
    : source_(std::move(source)), slot_(slot) {
  PrepareCall(endpoint, kStreamTimeout, &context_);
  slot_->Enter(&context_);
  stream_ = stub->StreamEvents(&context_);
}

EventStream::~EventStream() {
  if (!is_finished_) {
    context_.TryCancel();  // whatever was acknowledged is durable; nothing else is under way
    stream_->Finish();
  }
  slot_->Leave();
}

absl::Status EventStream::Fail() {
  is_finished_ = true;
  const absl::Status status = FromGrpc(stream_->Finish());
  return status.ok() ? absl::UnavailableError("the coordinator closed the event stream") : status;
}

absl::StatusOr<int64_t> EventStream::Send(std::vector<v1::RunEvent> events) {
  if (is_finished_) return absl::FailedPreconditionError("the event stream has failed");
  v1::EventBatch batch;
  batch.set_run(source_.key.run);
  batch.set_generation(source_.key.generation);
  batch.set_node_rank(source_.node_rank);
  const int64_t last_seq = events.empty() ? 0 : events.back().seq();
  for (v1::RunEvent& event : events)
    *batch.add_events() = std::move(event);
  if (!stream_->Write(batch)) return Fail();
  v1::EventAck ack;
  do {
    if (!stream_->Read(&ack)) return Fail();
  } while (ack.durable_seq() < last_seq);
  return ack.durable_seq();
}

}  // namespace assay::agent
