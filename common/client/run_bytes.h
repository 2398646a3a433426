// What the nodes of a run read from storage, in which part of it.

#ifndef COMMON_CLIENT_RUN_BYTES_H_
#define COMMON_CLIENT_RUN_BYTES_H_

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"
#include "common/client/json.h"
#include "common/telemetry/run_phases.h"

namespace assay::client {

// What the run's log says of when it did what. NOT_FOUND if it has left no log.
absl::StatusOr<telemetry::RunPhases> RunPhasesOf(const Client& client, const v1::Run& run);

// {"first_pass": {...}, "phases": [{"node": 0, "phase": "epoch 1", ...}]}, made of the log, the
// telemetry and the records of caches that the run has left; null if it has no telemetry. In
// `phases` those without a node are sums over all nodes. Downloads these files.
absl::StatusOr<Json> BytesOf(const Client& client, const v1::Run& run);

}  // namespace assay::client

#endif  // COMMON_CLIENT_RUN_BYTES_H_
