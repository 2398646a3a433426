// A run's quality and loss over its time, and below them what its nodes were measured to do.

#ifndef CLI_RUN_RUN_FIGURE_H_
#define CLI_RUN_RUN_FIGURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/resources.pb.h"

#include "cli/run/run_telemetry.h"
#include "cli/terminal/plot.h"

namespace assay::cli {

// Panels with one axis of seconds from run_start: what `log` says of quality and losses, with a
// line where each epoch begins, and one panel for each measure that begins with `measure`; if that
// is empty, those that say most. Each node is a line. Pure.
//   nodes: at least one
// NOT_FOUND if no measure begins so, INVALID_ARGUMENT if those are more than fit on a page.
absl::StatusOr<Figure> RunFigure(const v1::Run& run, absl::string_view log,
                                 const std::vector<NodeTelemetry>& nodes,
                                 const std::string& measure);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_FIGURE_H_
