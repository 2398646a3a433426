// Apply for events about leases of nodes and about what leaves memory. Private to apply.cc.

#ifndef SERVER_CORE_APPLY_ALLOCATION_H_
#define SERVER_CORE_APPLY_ALLOCATION_H_

#include "server/core/event.h"
#include "server/core/types.h"

namespace assay::core {

// Makes `state` what it is after the event of `record`.
void ApplyLease(const RecordedEvent& record, const AllocationRequested& e, State* state);
void ApplyLease(const RecordedEvent& record, const AllocationGranted& e, State* state);
void ApplyLease(const RecordedEvent& record, const AllocationSubmitted& e, State* state);
void ApplyLease(const RecordedEvent& record, const NodeEnrolled& e, State* state);
void ApplyLease(const RecordedEvent& record, const AllocationLaunchFailed& e, State* state);
void ApplyLease(const RecordedEvent& record, const AllocationActivated& e, State* state);
void ApplyLease(const RecordedEvent& record, const AllocationReleasing& e, State* state);
void ApplyLease(const RecordedEvent& record, const AllocationEnded& e, State* state);
void ApplyLease(const RecordedEvent& record, const WorkerJoined& e, State* state);
void ApplyLease(const RecordedEvent& record, const WorkerForgotten& e, State* state);
void ApplyLease(const RecordedEvent& record, const TokensForgotten& e, State* state);
void ApplyLease(const RecordedEvent& record, const RequestsForgotten& e, State* state);

// Events that ApplyLease knows.
template <typename E>
concept AboutLease = requires(const RecordedEvent& record, const E& e, State* state) {
  ApplyLease(record, e, state);
};

}  // namespace assay::core

#endif  // SERVER_CORE_APPLY_ALLOCATION_H_
