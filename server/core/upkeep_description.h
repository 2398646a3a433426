// What events are made of by which people change what is there already (upkeep, labels,
// withdrawals): see description.h.

#ifndef SERVER_CORE_UPKEEP_DESCRIPTION_H_
#define SERVER_CORE_UPKEEP_DESCRIPTION_H_

#include "server/core/described.h"
#include "server/core/labels.h"
#include "server/core/upkeep.h"
#include "server/core/withdrawal.h"

namespace assay::core {

template <class A, Is<StoreBackedUp> T>
constexpr void Fields(A& a, T& v) {
  a("directory", v.directory);
  a("event_seq", v.event_seq);
  a("artifact_count", v.artifact_count);
  a("fault_count", v.fault_count);
}

template <class A, Is<PrunedArtifact> T>
constexpr void Fields(A& a, T& v) {
  a("run", v.run);
  a("artifact", v.artifact);
}

template <class A, Is<ArtifactsPruned> T>
constexpr void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("policy", v.policy);
  a("artifacts", v.artifacts);
}

template <class A, Is<RefusedCalls> T>
constexpr void Fields(A& a, T& v) {
  a("principal", v.principal);
  a("peer", v.peer);
  a("method", v.method);
  a("reason", v.reason);
  a("count", v.count);
  a("first_us", v.first_us);
}

template <class A, Is<CallsRefused> T>
constexpr void Fields(A& a, T& v) {
  a("calls", v.calls);
}

template <class A, Is<SubmissionWithdrawn> T>
constexpr void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("reason", v.reason);
}

template <class A, Is<WorkerLabelled> T>
constexpr void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("labels", v.labels);
}

}  // namespace assay::core

#endif  // SERVER_CORE_UPKEEP_DESCRIPTION_H_
