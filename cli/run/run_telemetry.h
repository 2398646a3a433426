// What the nodes of a run did while it went on.

#ifndef CLI_RUN_RUN_TELEMETRY_H_
#define CLI_RUN_RUN_TELEMETRY_H_

#include <vector>

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "cli/terminal/print.h"
#include "common/client/run_telemetry.h"

namespace assay::cli {

using client::AddForeign;
using client::ClocksText;
using client::FindTelemetry;
using client::NodeTelemetry;
using client::SecondsOfRun;
using client::TelemetryOf;

// Adds members telemetry, telemetry_clocks and quiet to the view of `run`, from its start to its
// stop; without what was never more than zero, and with small drawings, for people (`printer`).
void AddTelemetry(const v1::Run& run, const std::vector<NodeTelemetry>& nodes,
                  const Printer& printer, ShowView* view);

// `assay run telemetry`: every sample.
Command RunTelemetryCommand();

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_TELEMETRY_H_
