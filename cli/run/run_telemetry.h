// What the nodes of a run did while it went on.

#ifndef CLI_RUN_RUN_TELEMETRY_H_
#define CLI_RUN_RUN_TELEMETRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "cli/command/command.h"
#include "cli/terminal/print.h"
#include "common/client/client.h"
#include "common/client/json.h"
#include "common/node_clock.h"
#include "common/telemetry/foreign.h"
#include "common/telemetry/series.h"

namespace assay::cli {

struct NodeTelemetry {
  int node = 0;  // of the gang
  telemetry::Series series;
  // By which `series` was carried over to the clock of node 0; nullopt: it was not.
  std::optional<NodeClock> clock{};
  std::vector<telemetry::ForeignSpan> foreign{};  // who else used it, where that was asked for
};

// When the clock of a series showed `at_ns`, in seconds from run_start: of one that was not carried
// over by the wall clock that the node had when its telemetry began. From then on, of a run that
// has not begun.
double SecondsOfRun(const v1::Run& run, const telemetry::Header& header, int64_t at_ns);

// Of each node of the run that has left any, by node, on the clock of node 0 where it is known how
// theirs stood to that (docs/adr/0201). DATA_LOSS if one's cannot be read.
absl::StatusOr<std::vector<NodeTelemetry>> TelemetryOf(const client::Client& client,
                                                       const v1::Run& run);

// The same; NOT_FOUND if there is none.
absl::StatusOr<std::vector<NodeTelemetry>> FindTelemetry(const client::Client& client,
                                                         const v1::Run& run);

// Adds to each of `nodes` who else used it, as far as this user may know: operators may. DATA_LOSS
// if a file cannot be read.
absl::Status AddForeign(const client::Client& client, const v1::Run& run,
                        std::vector<NodeTelemetry>* nodes);

// How many nodes were carried over by what: "3 by offsets, off node 0 by at most 0.81 ms (node 2);
// 1 by the wall clock, off by nobody knows what: node 4". Empty where there is nothing but node 0.
std::string ClocksText(const std::vector<NodeTelemetry>& nodes);

// Adds members telemetry, telemetry_clocks and quiet to the view of `run`, from its start to its
// stop; without what was never more than zero, and with small drawings, for people (`printer`).
void AddTelemetry(const v1::Run& run, const std::vector<NodeTelemetry>& nodes,
                  const Printer& printer, ShowView* view);

// `assay run telemetry`: every sample.
Command RunTelemetryCommand();

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_TELEMETRY_H_
