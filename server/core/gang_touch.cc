#include "server/core/gang_touch.h"

namespace assay::core {
namespace {

using LeadOf = absl::FunctionRef<ClockLead(const Run& run, size_t node, NodeTouch touch)>;

// Each node stamps what it saw by its own clock.
std::optional<GangTouch> EarliestOf(const Run& run, NodeTouch touch, LeadOf lead_of) {
  std::optional<GangTouch> earliest;
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const std::optional<int64_t>& seen_us = run.nodes[i].*touch;
    if (!seen_us.has_value()) continue;
    const ClockLead lead = i == 0 ? ClockLead{} : lead_of(run, i, touch);
    const int64_t at_us = *seen_us - lead.ahead_us;
    if (earliest.has_value() && earliest->at_us <= at_us) continue;
    earliest = GangTouch{.at_us = at_us, .uncertainty_us = lead.uncertainty_us};
  }
  return earliest;
}

}  // namespace

ClockLead LeadAtStart(const Run& run, size_t node, NodeTouch /*touch*/) {
  constexpr int64_t kUnmeasuredClockUs = 50'000;
  const RunNode& first = run.nodes.front();
  const RunNode& one = run.nodes[node];
  // Two measured offsets are off by the sum of their uncertainties.
  if (one.clock_offset_uncertainty_us <= 0 || first.clock_offset_uncertainty_us <= 0)
    return {.uncertainty_us = kUnmeasuredClockUs};
  return {.ahead_us = one.clock_offset_us - first.clock_offset_us,
          .uncertainty_us = one.clock_offset_uncertainty_us + first.clock_offset_uncertainty_us};
}

void FindFirstTouches(LeadOf lead_of, Run* run) {
  run->first_touch = EarliestOf(*run, &RunNode::first_touch_us, lead_of);
  run->observed_touch = EarliestOf(*run, &RunNode::observed_touch_us, lead_of);
}

}  // namespace assay::core
