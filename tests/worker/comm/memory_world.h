// Ranks as threads of one process.

#ifndef TESTS_WORKER_COMM_MEMORY_WORLD_H_
#define TESTS_WORKER_COMM_MEMORY_WORLD_H_

#include <memory>
#include <vector>

#include "common/clock.h"
#include "worker/comm/collective.h"

namespace assay::comm {

// A world of `world_size` ranks; element r belongs to rank r and may be used by one thread at a
// time, each element by another thread. `clock` must outlive them. A rank that is destroyed before
// Close counts as dead: the others get UNAVAILABLE as soon as they wait for anything.
std::vector<std::unique_ptr<Collective>> OpenMemoryWorld(int world_size, const Clock* clock);

}  // namespace assay::comm

#endif  // TESTS_WORKER_COMM_MEMORY_WORLD_H_
