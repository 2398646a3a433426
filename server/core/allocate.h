// Leases of nodes: what follows for them from the state and the time, and what they mean for their
// workers. Pure functions; each gives the events that shall happen.

#ifndef SERVER_CORE_ALLOCATE_H_
#define SERVER_CORE_ALLOCATE_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "server/core/command.h"
#include "server/core/event.h"
#include "server/core/schedule.h"
#include "server/core/types.h"

namespace assay::core {

// Between the deadline of an allocation, when its runs are stopped, and the moment when its nodes
// are given back even if they have not stopped.
inline constexpr int64_t kReleaseGraceUs = 2LL * 60 * 1'000'000;

// The n-th failure of a launcher in a row, from 1: the pause before it is asked again, 5 s to 5
// min.
int64_t RetryPauseUs(int32_t failure_count);

// FAILED_PRECONDITION if the worker says that it is of an allocation that has ended.
absl::Status CheckLease(const State& state, const Synchronize& call);

// The allocation gets no more runs and its nodes are gone; what they executed has failed.
std::vector<Event> EndAllocation(const State& state, const Allocation& allocation,
                                 const std::string& reason);

// Workers that belong to none join the allocation that was granted them, else that of the workers
// that come by themselves, which begins with the first.
std::vector<Event> AssignWorkers(const State& state);

// What has become of allocations: all workers there, the deadline, the end of what they are for.
// Those that are `unheard` of are not judged by time: only their launcher knows whether they are
// there.
std::vector<Event> AdvanceAllocations(const State& state, const std::set<AllocationId>& unheard,
                                      int64_t now_us);

// True if the nodes shall be given back now: nothing runs on them, or the grace is over.
bool IsReleaseDue(const State& state, const Allocation& allocation, int64_t now_us);

}  // namespace assay::core

#endif  // SERVER_CORE_ALLOCATE_H_
