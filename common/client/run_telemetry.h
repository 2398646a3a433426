// What the nodes of a run did while it went on, as their files say it.

#ifndef COMMON_CLIENT_RUN_TELEMETRY_H_
#define COMMON_CLIENT_RUN_TELEMETRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"
#include "common/node_clock.h"
#include "common/telemetry/foreign.h"
#include "common/telemetry/series.h"

namespace assay::client {

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
absl::StatusOr<std::vector<NodeTelemetry>> TelemetryOf(const Client& client, const v1::Run& run);

// The same; NOT_FOUND if there is none.
absl::StatusOr<std::vector<NodeTelemetry>> FindTelemetry(const Client& client, const v1::Run& run);

// Adds to each of `nodes` who else used it, as far as this user may know: operators may. DATA_LOSS
// if a file cannot be read.
absl::Status AddForeign(const Client& client, const v1::Run& run,
                        std::vector<NodeTelemetry>* nodes);

// How many nodes were carried over by what: "3 by offsets, off node 0 by at most 0.81 ms (node 2);
// 1 by the wall clock, off by nobody knows what: node 4". Empty where there is nothing but node 0.
std::string ClocksText(const std::vector<NodeTelemetry>& nodes);

}  // namespace assay::client

#endif  // COMMON_CLIENT_RUN_TELEMETRY_H_
