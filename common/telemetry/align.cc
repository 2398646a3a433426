#include "common/telemetry/align.h"

#include <algorithm>
#include <cstdint>

namespace assay::telemetry {

void Align(const NodeClock& clock, Series* series) {
  constexpr int64_t kUsPerMs = 1000;
  int64_t error_ns = 0;
  for (size_t i = 0; i < series->at_ns.size(); ++i) {
    const CarriedTime carried = clock.AtNodeZero(series->at_ns[i]);
    error_ns = std::max(error_ns, carried.error_ns);
    // By another boot's clock, which is as uncertain, the next may seem to be before.
    series->at_ns[i] = i == 0 ? carried.at_ns : std::max(carried.at_ns, series->at_ns[i - 1]);
  }
  series->header.node_ns = clock.start().node_ns;
  series->header.wall_us = clock.start().run_start_ms * kUsPerMs;
  series->clock_error_ns = error_ns;
}

void Align(const NodeClock& clock, std::vector<ForeignSpan>* spans) {
  for (ForeignSpan& span : *spans) {
    span.begin_ns = clock.AtNodeZero(span.begin_ns).at_ns;
    span.end_ns = clock.AtNodeZero(span.end_ns).at_ns;
  }
}

}  // namespace assay::telemetry
