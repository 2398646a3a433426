// Which samples of a split a device keeps in its memory: the first that come by, as many as fit.
//
// That is a function of the order of reading, so the readers know what they need not read again
// without asking the device.

#ifndef WORKER_DATA_CACHE_PLAN_H_
#define WORKER_DATA_CACHE_PLAN_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"

#include "common/cache_place.h"

namespace assay::data {

// Not thread-safe.
class CachePlan {
 public:
  // Deals the places from `first_slot` on, `slots` of them; 0: nothing is kept.
  CachePlan(int64_t first_slot, int64_t slots) : first_slot_(first_slot), slots_(slots) {}

  // The place of `sample` (its index in the split), which is read, or would be, after all that were
  // asked for before.
  CachePlace Next(uint32_t sample);

 private:
  const int64_t first_slot_;
  const int64_t slots_;
  absl::flat_hash_map<uint32_t, int64_t> slot_of_;
};

}  // namespace assay::data

#endif  // WORKER_DATA_CACHE_PLAN_H_
