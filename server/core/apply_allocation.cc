#include "server/core/apply_allocation.h"

#include <algorithm>

#include "common/log.h"
#include "server/core/transitions.h"

namespace assay::core {
namespace {

Allocation& Find(const RecordedEvent& record, AllocationId id, State* state) {
  const auto it = state->allocations.find(id);
  CHECK(it != state->allocations.end()) << "event=" << record.seq << " names allocation=" << id;
  return it->second;
}

Worker& Find(const RecordedEvent& record, const std::string& worker, State* state) {
  const auto it = state->workers.find(worker);
  CHECK(it != state->workers.end()) << "event=" << record.seq << " names worker=" << worker;
  return it->second;
}

void MoveTo(AllocationState target, Allocation* allocation) {
  CHECK_OK(CheckMove(allocation->state, target));
  allocation->state = target;
}

void ForgetFailures(Allocation* allocation) {
  allocation->failure_count = 0;
  allocation->last_error.clear();
  allocation->retry_at_us = 0;
}

}  // namespace

void ApplyLease(const RecordedEvent& record, const AllocationRequested& e, State* state) {
  CHECK(e.allocation.number == state->last_allocation + 1) << "allocation=" << e.allocation;
  state->last_allocation = e.allocation.number;
  state->allocations[e.allocation] = {.id = e.allocation,
                                      .spec = e.spec,
                                      .state_reason = e.reason,
                                      .requested_by = record.principal,
                                      .created_at_us = record.at_us};
  if (!e.request_id.empty())
    state->requests[{e.standing, record.principal, e.request_id}] = {e.allocation.ToString(),
                                                                     record.at_us};
}

void ApplyLease(const RecordedEvent& record, const AllocationGranted& e, State* state) {
  Allocation& allocation = Find(record, e.allocation, state);
  if (allocation.state == AllocationState::kRequested) {
    MoveTo(AllocationState::kGranted, &allocation);
    allocation.granted_at_us = record.at_us;
  }
  allocation.workers = e.workers;
  allocation.hosts = e.hosts;
  allocation.deadline_us = e.deadline_us;
  if (allocation.first_deadline_us == 0) allocation.first_deadline_us = e.deadline_us;
  ForgetFailures(&allocation);
}

void ApplyLease(const RecordedEvent& record, const AllocationSubmitted& e, State* state) {
  Allocation& allocation = Find(record, e.allocation, state);
  allocation.job = e.job;
  ForgetFailures(&allocation);
}

void ApplyLease(const RecordedEvent& record, const NodeEnrolled& e, State* state) {
  Find(record, e.allocation, state).enrolled_hosts.push_back(e.host);
}

void ApplyLease(const RecordedEvent& record, const AllocationLaunchFailed& e, State* state) {
  Allocation& allocation = Find(record, e.allocation, state);
  ++allocation.failure_count;
  allocation.last_error = e.error;
  allocation.retry_at_us = e.retry_at_us;
}

void ApplyLease(const RecordedEvent& record, const AllocationActivated& e, State* state) {
  Allocation& allocation = Find(record, e.allocation, state);
  MoveTo(AllocationState::kActive, &allocation);
  allocation.activated_at_us = record.at_us;
}

void ApplyLease(const RecordedEvent& record, const AllocationReleasing& e, State* state) {
  Allocation& allocation = Find(record, e.allocation, state);
  MoveTo(AllocationState::kReleasing, &allocation);
  allocation.state_reason = e.reason;
  ForgetFailures(&allocation);  // what failed was to get them
  const auto it = state->submissions.find(allocation.spec.submission);
  if (it == state->submissions.end()) return;
  std::vector<std::string>& absent = it->second.absent_hosts;
  for (const std::string& host : e.absent_hosts)
    if (std::find(absent.begin(), absent.end(), host) == absent.end()) absent.push_back(host);
}

void ApplyLease(const RecordedEvent& record, const AllocationEnded& e, State* state) {
  Allocation& allocation = Find(record, e.allocation, state);
  MoveTo(AllocationState::kEnded, &allocation);
  allocation.state_reason = e.reason;
  allocation.ended_at_us = record.at_us;
  ForgetFailures(&allocation);
  if (e.submission.is_none()) return;
  const auto it = state->submissions.find(e.submission);
  CHECK(it != state->submissions.end()) << "event=" << record.seq << " submission=" << e.submission;
  ++it->second.lease_failure_count;
  it->second.lease_error = e.reason;
}

void ApplyLease(const RecordedEvent& record, const WorkerJoined& e, State* state) {
  Find(record, e.allocation, state);
  Find(record, e.worker, state).allocation = e.allocation;
}

void ApplyLease(const RecordedEvent& record, const WorkerForgotten& e, State* state) {
  Worker& worker = Find(record, e.worker, state);
  CHECK(worker.run.is_none() && worker.certificate_generation == 0) << "worker=" << e.worker;
  worker.is_forgotten = true;
}

void ApplyLease(const RecordedEvent& record, const TokensForgotten& e, State* state) {
  for (const TokenId id : e.tokens) {
    const auto it = state->tokens.find(id);
    CHECK(it != state->tokens.end()) << "event=" << record.seq << " names token=" << id;
    it->second.is_forgotten = true;
  }
}

void ApplyLease(const RecordedEvent&, const RequestsForgotten& e, State* state) {
  for (const RequestKey& key : e.requests)
    state->requests.erase(key);
}

}  // namespace assay::core
