// What the nodes of a run read from storage, in which part of it.

#ifndef CLI_RUN_RUN_BYTES_H_
#define CLI_RUN_RUN_BYTES_H_

#include <optional>

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "cli/terminal/print.h"
#include "common/client/client.h"
#include "common/telemetry/run_phases.h"

namespace assay::cli {

// What the run's log says of when it did what. NOT_FOUND if it has left no log.
absl::StatusOr<telemetry::RunPhases> RunPhasesOf(const client::Client& client, const v1::Run& run);

// {"first_pass": {...}, "phases": [{"node": 0, "phase": "epoch 1", ...}]}, made of the log, the
// telemetry and the records of caches that the run has left; null if it has no telemetry. In
// `phases` those without a node are sums over all nodes. Downloads these files.
absl::StatusOr<Json> BytesOf(const client::Client& client, const v1::Run& run);

// Makes it members of the run, with a line for the first pass and a table.
void AddBytes(Json bytes, ShowView* view);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_BYTES_H_
