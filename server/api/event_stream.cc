#include "server/api/event_stream.h"

#include <algorithm>

#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/convert_worker.h"
#include "server/api/limits.h"
#include "server/api/names.h"

namespace assay::api {
namespace {

// Waiting for their commit, per stream: enough to fill two commits at full rate.
constexpr int kBatchesMax = 32;
constexpr size_t kBytesMax = 8 << 20;

absl::StatusOr<core::AppendRunEvents> Read(const v1::EventBatch& batch) {
  RETURN_IF_ERROR(CheckLimits(batch));
  return FromProto(batch);
}

}  // namespace

EventStream::EventStream(const Backend* backend, const absl::StatusOr<auth::Identity>& admission)
    : backend_(backend),
      worker_(admission.ok() ? admission->principal : ""),
      certificate_generation_(admission.ok() ? admission->certificate_generation : 0) {
  Step([&](State* state) { state->status = admission.status(); });
}

template <typename Change>
void EventStream::Step(Change change) {
  Actions actions;
  {
    MutexLock lock(&mutex_);
    change(&state_);
    actions = Decide(&state_);
    if (actions.write) {
      const auto next = state_.acks.begin();
      ack_.set_run(next->first.first);
      ack_.set_node_rank(next->first.second);
      ack_.set_durable_seq(next->second);
      state_.acks.erase(next);
    }
  }
  // A call that leads to the end of this object comes last, and never beside another.
  if (actions.read) StartRead(&batch_);
  if (actions.write) StartWrite(&ack_);
  if (actions.finish) Finish(ToGrpc(actions.status));
}

EventStream::Actions EventStream::Decide(State* state) {
  Actions actions;
  if (state->is_finished) return actions;
  const bool is_over = state->is_read_out || state->is_cancelled || !state->status.ok();
  actions.read = !is_over && !state->is_reading && !state->is_submitting &&
                 state->waiting_batches < kBatchesMax && state->waiting_bytes < kBytesMax;
  actions.write = !state->is_cancelled && !state->is_writing && !state->acks.empty();
  state->is_reading = state->is_reading || actions.read;
  state->is_writing = state->is_writing || actions.write;
  // A read need not be waited for: gRPC ends it.
  if (is_over && state->waiting_batches == 0 && !state->is_submitting && !state->is_writing) {
    state->is_finished = true;
    actions.finish = true;
    actions.status = state->is_cancelled ? absl::CancelledError("cancelled") : state->status;
  }
  return actions;
}

void EventStream::OnReadDone(bool ok) {
  absl::StatusOr<core::AppendRunEvents> command = absl::CancelledError("no batch");
  const size_t bytes = ok ? batch_.ByteSizeLong() : 0;
  if (ok) command = Read(batch_);
  bool is_wanted = false;
  Step([&](State* state) {
    state->is_reading = false;
    is_wanted = ok && command.ok() && state->status.ok() && !state->is_cancelled;
    if (!ok) state->is_read_out = true;
    if (ok && !command.ok() && state->status.ok()) state->status = command.status();
    if (!is_wanted) return;
    state->is_submitting = true;
    ++state->waiting_batches;
    state->waiting_bytes += bytes;
  });
  if (is_wanted) Submit(*std::move(command), bytes);
}

void EventStream::Submit(core::AppendRunEvents command, size_t bytes) {
  command.worker = worker_;
  const Node node(NameOf(command.run), command.node_rank);
  backend_->core->Post({.principal = worker_,
                        .body = std::move(command),
                        .certificate_generation = certificate_generation_,
                        .standing = {.role = "worker"}},
                       [this, node, bytes](absl::StatusOr<core::Reply> reply) {
                         Committed(node, bytes, std::move(reply));
                       });
  Step([](State* state) { state->is_submitting = false; });
}

void EventStream::Committed(const Node& node, size_t bytes, absl::StatusOr<core::Reply> reply) {
  Step([&](State* state) {
    --state->waiting_batches;
    state->waiting_bytes -= bytes;
    if (reply.ok()) {
      int64_t& durable = state->acks[node];
      durable = std::max(durable, Expect<core::AppendReply>(*std::move(reply)).durable_seq);
    } else if (state->status.ok()) {
      state->status = reply.status();
    }
  });
}

void EventStream::OnWriteDone(bool ok) {
  Step([ok](State* state) {
    state->is_writing = false;
    if (!ok) state->is_cancelled = true;
  });
}

void EventStream::OnCancel() {
  Step([](State* state) { state->is_cancelled = true; });
}

}  // namespace assay::api
