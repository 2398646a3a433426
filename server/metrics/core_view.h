// What the core has before it at a moment, counted: made on the core thread, read on any.

#ifndef SERVER_METRICS_CORE_VIEW_H_
#define SERVER_METRICS_CORE_VIEW_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/core/core.h"
#include "server/metrics/family.h"

namespace assay::metrics {

// By state, as people read it but in lower case: "queued". Every state is there, if with 0.
using StateCounts = std::map<std::string, double>;

struct WorkerView {
  std::string name;
  bool is_silent = false;             // SUSPECT or LOST
  bool is_executing = false;          // it holds a run
  double offset_seconds = 0;          // its clock minus the coordinator's
  std::optional<double> lag_seconds;  // of its events, by who made the view; none: not known
};

struct CoreView {
  StateCounts submissions;  // that have not ended
  StateCounts runs;         // that have not ended
  StateCounts allocations;  // that have not ended
  StateCounts workers;
  std::vector<WorkerView> fleet;  // that have not signed off, by name
};

CoreView ViewOf(const core::Core& core);

// "queued", for "QUEUED".
std::string StateLabel(absl::string_view state);

// assay_runs, assay_workers, assay_worker_silent ...
Families ToFamilies(const CoreView& view);

}  // namespace assay::metrics

#endif  // SERVER_METRICS_CORE_VIEW_H_
