// What records about upkeep are made of: see description.h.

#ifndef SERVER_CORE_UPKEEP_DESCRIPTION_H_
#define SERVER_CORE_UPKEEP_DESCRIPTION_H_

#include "server/core/described.h"
#include "server/core/upkeep.h"

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

}  // namespace assay::core

#endif  // SERVER_CORE_UPKEEP_DESCRIPTION_H_
