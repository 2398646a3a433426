// Telemetry of several nodes on one clock.

#ifndef COMMON_TELEMETRY_ALIGN_H_
#define COMMON_TELEMETRY_ALIGN_H_

#include <vector>

#include "common/node_clock.h"
#include "common/telemetry/foreign.h"
#include "common/telemetry/series.h"

namespace assay::telemetry {

// Carries the times of a node, whose clock is `clock`, over to the clock of the run's node 0, and
// the header with them: from then on NodeNsAt finds there what the log stamps.
void Align(const NodeClock& clock, Series* series);
void Align(const NodeClock& clock, std::vector<ForeignSpan>* spans);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_ALIGN_H_
