// Which meters a step reads besides those that it finds.

#ifndef WORKER_AGENT_METER_OPTIONS_H_
#define WORKER_AGENT_METER_OPTIONS_H_

#include "assay/v1/config.pb.h"

#include "worker/agent/telemetry/source.h"

namespace assay::agent {

// What the configuration says of the meters of this node, by whose name what names the node is
// filled in; and Slurm, where this process is in one of its jobs.
MeterOptions MeterOptionsOf(const v1::WorkerConfig& config);

}  // namespace assay::agent

#endif  // WORKER_AGENT_METER_OPTIONS_H_
