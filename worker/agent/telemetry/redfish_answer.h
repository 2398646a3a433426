// What a controller of a board says of the node's power: Redfish's resources EnvironmentMetrics
// (DSP2046, from 2020.4 on) and Power (before that).

#ifndef WORKER_AGENT_TELEMETRY_REDFISH_ANSWER_H_
#define WORKER_AGENT_TELEMETRY_REDFISH_ANSWER_H_

#include "absl/strings/string_view.h"

#include "worker/agent/telemetry/asked_meter.h"

namespace assay::agent {

// EnergyJoules.Reading and PowerWatts.Reading, where the resource has them; else the first of
// PowerControl[].PowerConsumedWatts, of which the others are its parts; else EnergykWh.Reading,
// which most controllers count in steps of a watt-hour or more. kNoReading if it has none of them.
MeterAnswer ReadRedfishAnswer(absl::string_view body);

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_REDFISH_ANSWER_H_
