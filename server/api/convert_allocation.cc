#include "server/api/convert_allocation.h"

#include <string>

#include "common/status.h"
#include "server/api/convert.h"

namespace assay::api {
namespace {

v1::Allocation::State ValueOf(core::AllocationState state) {
  switch (state) {
    case core::AllocationState::kRequested:
      return v1::Allocation::REQUESTED;
    case core::AllocationState::kGranted:
      return v1::Allocation::GRANTED;
    case core::AllocationState::kActive:
      return v1::Allocation::ACTIVE;
    case core::AllocationState::kReleasing:
      return v1::Allocation::RELEASING;
    case core::AllocationState::kEnded:
      return v1::Allocation::ENDED;
  }
  return v1::Allocation::STATE_UNSPECIFIED;
}

void SetTimes(const core::Allocation& allocation, v1::Allocation* message) {
  SetTime(allocation.created_at_us, message->mutable_create_time());
  if (allocation.granted_at_us != 0)
    SetTime(allocation.granted_at_us, message->mutable_grant_time());
  if (allocation.ended_at_us != 0) SetTime(allocation.ended_at_us, message->mutable_end_time());
  if (allocation.deadline_us != 0)
    SetTime(allocation.deadline_us, message->mutable_deadline_time());
  if (allocation.retry_at_us != 0) SetTime(allocation.retry_at_us, message->mutable_retry_time());
}

}  // namespace

v1::Allocation ToProto(const core::Allocation& allocation) {
  v1::Allocation message;
  message.set_name(NameOf(allocation.id));
  message.set_state(ValueOf(allocation.state));
  message.set_state_reason(allocation.state_reason);
  message.set_launcher(allocation.spec.launcher);
  message.set_node_count(allocation.spec.node_count);
  message.mutable_labels()->insert(allocation.spec.labels.begin(), allocation.spec.labels.end());
  message.set_submission(NameOf(allocation.spec.submission));
  if (allocation.spec.lifetime_us > 0)
    message.mutable_lifetime()->set_seconds(allocation.spec.lifetime_us / 1'000'000);
  message.set_requested_by(allocation.requested_by);
  for (const std::string& worker : allocation.workers)
    message.add_workers(WorkerName(worker));
  SetTimes(allocation, &message);
  message.set_failure_count(allocation.failure_count);
  message.set_last_error(allocation.last_error);
  return message;
}

v1::ListAllocationsResponse ToProto(const core::Page<core::Allocation>& page) {
  v1::ListAllocationsResponse response;
  for (const core::Allocation& allocation : page.items)
    *response.add_allocations() = ToProto(allocation);
  response.set_next_page_token(page.next_page_token);
  return response;
}

absl::StatusOr<core::RequestAllocation> FromProto(const v1::RequestAllocationRequest& request) {
  if (!request.request_id().empty()) RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  const v1::Allocation& wanted = request.allocation();
  core::RequestAllocation command;
  command.request_id = request.request_id();
  command.reason = request.reason();
  command.spec.launcher = wanted.launcher();
  command.spec.node_count = wanted.node_count();
  command.spec.labels.insert(wanted.labels().begin(), wanted.labels().end());
  command.spec.lifetime_us = wanted.lifetime().seconds() * 1'000'000;
  if (!wanted.submission().empty()) {
    ASSIGN_OR_RETURN(command.spec.submission, ParseSubmissionName(wanted.submission()));
  }
  return command;
}

}  // namespace assay::api
