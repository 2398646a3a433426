// Allocation: a lease of nodes, from the request to its end. A launcher grants it (server/launch):
// "attach" for workers that an operator starts, "local" for agents on the coordinator's own host,
// "slurm" for a job of that batch system. "submitter" has brought the nodes of a job of his own for
// one submission (ADR 0174): those end by themselves. Workers belong to one allocation, and so does
// each run's gang.
//
//   REQUESTED  asked for; the launcher has not granted it (yet), or could not: then it is asked
//              again after a pause that doubles
//   GRANTED    its workers are known by name and may call
//   ACTIVE     all of them have called
//   RELEASING  gets no more runs; what runs may end, then the launcher takes the nodes back
//   ENDED      its nodes are gone; what they still executed is lost

#ifndef SERVER_CORE_ALLOCATION_H_
#define SERVER_CORE_ALLOCATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/core/id.h"

namespace assay::core {

// Its workers come by themselves: it has no node_count, and nobody grants or releases it.
inline constexpr absl::string_view kAttachLauncher = "attach";

// Of agents on the coordinator's own host.
inline constexpr absl::string_view kLocalLauncher = "local";

// Of nodes that a submitter brings.
inline constexpr absl::string_view kSubmitterLauncher = "submitter";
// How the names of their workers begin, own-a12-0: no other worker may have such a name, or a
// submitter's agent could serve others once its allocation has ended.
inline constexpr absl::string_view kSubmitterWorkerPrefix = "own-a";

// A worker that says so by this label, with the id as value, is of that allocation. Launchers set
// it; the worker is refused once that allocation has ended.
inline constexpr absl::string_view kAllocationLabel = "allocation";

// The machine of a worker, where its name is that of its lease.
inline constexpr absl::string_view kNodeLabel = "node";

// What is asked for.
struct AllocationSpec {
  std::string launcher;                       // attach | local | slurm | submitter
  int32_t node_count = 0;                     // attach: 0
  std::map<std::string, std::string> labels;  // that the workers shall have
  SubmissionId submission;                    // whose runs alone may use it; none: all
  int64_t lifetime_us = 0;                    // from the grant; 0: until it is released
  // The nodes that it shall have, as a batch system knows them: those of its set so far. Empty:
  // any.
  std::vector<std::string> wanted_hosts;
  std::string profile;                      // of the launcher; empty: what that gives to all
  std::string organization;                 // whose account it is charged to
  std::vector<std::string> excluded_hosts;  // that it shall not have
  bool operator==(const AllocationSpec&) const = default;
};

enum class AllocationState { kRequested, kGranted, kActive, kReleasing, kEnded };

struct Allocation {
  AllocationId id;
  AllocationSpec spec;
  AllocationState state = AllocationState::kRequested;
  std::string state_reason;  // one sentence: who asked for it, why it is released, how it ended
  std::string requested_by;  // principal; kCoordinator: the scheduler
  int64_t created_at_us = 0;
  int64_t granted_at_us = 0;
  int64_t ended_at_us = 0;
  int64_t deadline_us = 0;           // its nodes go then, whatever runs; 0: none
  std::vector<std::string> workers;  // granted, by name; attach: empty
  // As a batch system knows it; empty with other launchers.
  std::string job;                          // "4711"
  std::vector<std::string> hosts;           // of the workers, in their order
  std::vector<std::string> enrolled_hosts;  // that have a certificate by their job; one each
  int64_t activated_at_us = 0;              // 0: never were all workers there
  int64_t first_deadline_us = 0;            // the deadline of its first grant that had one
  // Of the launcher's failures since it last succeeded.
  int32_t failure_count = 0;
  std::string last_error;
  int64_t retry_at_us = 0;  // it is asked again then
  bool operator==(const Allocation&) const = default;
};

// True if its workers may get runs.
inline bool IsServing(AllocationState state) {
  return state == AllocationState::kGranted || state == AllocationState::kActive;
}

// "REQUESTED"
absl::string_view ToString(AllocationState state);

}  // namespace assay::core

#endif  // SERVER_CORE_ALLOCATION_H_
