// The machine's terms from and to the messages of WorkerService.

#ifndef WORKER_AGENT_WIRE_H_
#define WORKER_AGENT_WIRE_H_

#include <optional>

#include "assay/v1/worker_service.pb.h"

#include "worker/agent/machine.h"

namespace assay::agent {

v1::WorkerStatus ToProto(const Status& status);

// The spec of the result is the serialized RunSpec. nullopt for an action that this version does
// not know: nothing is to change then.
std::optional<Desired> FromProto(const v1::DesiredState& desired);

}  // namespace assay::agent

#endif  // WORKER_AGENT_WIRE_H_
