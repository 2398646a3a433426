// A moment, as the node saw it.

#ifndef WORKER_AGENT_STAMP_H_
#define WORKER_AGENT_STAMP_H_

#include <cstdint>

#include "common/clock.h"

namespace assay::agent {

struct Stamp {
  int64_t wall_us = 0;  // since 1970
  int64_t mono_ns = 0;  // CLOCK_MONOTONIC: the same for all processes of one boot
  bool operator==(const Stamp&) const = default;
};
Stamp StampNow(const Clock& clock);

}  // namespace assay::agent

#endif  // WORKER_AGENT_STAMP_H_
