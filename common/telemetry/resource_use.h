// How a run used its nodes in each of its phases (MLPerf HPC paper, section 5). Pure functions of
// their arguments.

#ifndef COMMON_TELEMETRY_RESOURCE_USE_H_
#define COMMON_TELEMETRY_RESOURCE_USE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/telemetry/run_phases.h"
#include "common/telemetry/series.h"

namespace assay::telemetry {

// Of one node and phase.
struct PhaseUse {
  std::string phase;   // init | staging | training | evaluation
  double seconds = 0;  // all of it that was measured
  double mean = 0;
  double highest = 0;  // between two samples
};

struct ResourceUse {
  std::string resource;  // processors | memory held | storage read | network received
  std::string unit;      // cores | GB | MB/s
  std::vector<PhaseUse> phases;
  std::vector<std::optional<double>> course;  // in equal parts from run_start to run_stop
};

// Resources that the node's telemetry does not have are left out, and so are phases of which no
// part was measured. Training is what of the epochs is not evaluation. Runs without both run_start
// and run_stop have no use.
std::vector<ResourceUse> UseOf(const Series& series, const RunPhases& phases,
                               size_t part_count_max);

// The node's processors, from how their time passes; nullopt: it does not tell.
std::optional<double> ProcessorsOf(const Series& series);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_RESOURCE_USE_H_
