// Which workers could execute a submission's runs, counted for people who ask why one waits.

#ifndef SERVER_CORE_CENSUS_H_
#define SERVER_CORE_CENSUS_H_

#include <cstdint>
#include <vector>

#include "server/core/schedule.h"
#include "server/core/types.h"

namespace assay::core {

// The workers of an allocation as one spec sees them.
struct Census {
  AllocationId allocation;
  int32_t matching = 0;         // in any state but GONE
  int32_t silent = 0;           // of these, SUSPECT or LOST
  int32_t draining = 0;         // of these
  int32_t free = 0;             // of these
  int64_t silent_since_us = 0;  // the latest
  std::vector<const Worker*> drained{};
  int32_t elsewhere = 0;  // that match in other allocations: a gang comes from one

  int32_t usable() const { return matching - silent - draining; }
};

// Of the allocation that has most to offer. Points into `state`.
Census CountWorkers(const State& state, const PresenceMap& presence, const SubmissionSpec& spec,
                    SubmissionId submission);

}  // namespace assay::core

#endif  // SERVER_CORE_CENSUS_H_
