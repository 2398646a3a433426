// Which nodes have what a run would start from in their caches, by what they said last: a
// preference among nodes that are equal otherwise, and nothing that a run waits for. Pure
// functions.

#ifndef SERVER_CORE_CACHE_PLACEMENT_H_
#define SERVER_CORE_CACHE_PLACEMENT_H_

#include <string>
#include <vector>

#include "server/core/schedule.h"
#include "server/core/types.h"

namespace assay::core {

// The digest of the dataset that the runs of the submission start from where a cache has it; empty:
// caches make no difference to them, for their round times staging or nothing is staged.
std::string DigestToStartFrom(const State& state, const Submission& submission);

// True if the worker has said that its cache has all of the dataset. False while nothing is known,
// as after a restart of its agent.
bool IsCached(const PresenceMap& presence, const std::string& worker, const std::string& digest);

// Those of `workers` whose caches have what the runs of the submission start from.
std::vector<std::string> CachedAmong(const State& state, const PresenceMap& presence,
                                     const Submission& submission,
                                     const std::vector<std::string>& workers);

}  // namespace assay::core

#endif  // SERVER_CORE_CACHE_PLACEMENT_H_
