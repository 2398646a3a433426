// The earliest touch of the dataset that a gang's nodes have seen, on one clock. Pure functions of
// their arguments.

#ifndef SERVER_CORE_GANG_TOUCH_H_
#define SERVER_CORE_GANG_TOUCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"

#include "server/core/types.h"

namespace assay::core {

// A node's witness of a touch.
using NodeTouch = std::optional<int64_t> RunNode::*;

// By how much a node's wall clock was ahead of that of node 0, and how far that may be off.
struct ClockLead {
  int64_t ahead_us = 0;
  int64_t uncertainty_us = 0;
};

// By the offsets from the coordinator's clock that the nodes had when they started the run; where
// one was not measured, 50 ms either way.
ClockLead LeadAtStart(const Run& run, size_t node, NodeTouch touch);

// Sets the run's first touches from those of its nodes. `lead_of` is not asked of node 0.
void FindFirstTouches(
    absl::FunctionRef<ClockLead(const Run& run, size_t node, NodeTouch touch)> lead_of, Run* run);

}  // namespace assay::core

#endif  // SERVER_CORE_GANG_TOUCH_H_
