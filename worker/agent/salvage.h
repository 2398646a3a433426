// What a node leaves behind for others to deliver: a copy of the directory of a run that has ended,
// from which a new agent carries on (run_directory.h).

#ifndef WORKER_AGENT_SALVAGE_H_
#define WORKER_AGENT_SALVAGE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "worker/agent/run_directory.h"

namespace assay::agent {

// Copies `run` to <salvage_directory>/runs: all of its regular files but what ranks have made in
// theirs, and of that the `artifacts`, which are paths. Follows no links. The copy is there whole
// or not at all. The errno's code if it cannot be made; the run is as it was then.
absl::Status SalvageRun(const RunDirectory& run, const std::vector<std::string>& artifacts,
                        const std::string& salvage_directory);

// Whether each run that `data_directory` holds has a copy, so that nothing is lost with it.
bool IsAllSalvaged(const std::string& data_directory, const std::string& salvage_directory);

}  // namespace assay::agent

#endif  // WORKER_AGENT_SALVAGE_H_
