// Launchers of the site, srun and mpirun: what node 0 starts so that `assay-worker enter` is
// started for each rank of the gang, on the rank's node.

#ifndef WORKER_AGENT_WORKLOAD_LAUNCHER_H_
#define WORKER_AGENT_WORKLOAD_LAUNCHER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/run_spec.pb.h"

#include "worker/agent/workload/workload.h"

namespace assay::agent {

// PATH of programs, and of a launcher whose agent has none.
inline constexpr char kDefaultPath[] =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Whether the launcher of the spec can be started by this process. FAILED_PRECONDITION, with the
// remedy, if it is not in PATH, or srun is not in a Slurm job, or belongs to another account.
absl::Status CheckLauncher(const v1::RunSpec& spec, const v1::WorkerConfig& worker);

// Its rank is kLauncherRank; it is the site's, so it has this process's environment and nothing of
// the submission's. `host_file`: a path that it may read, to be written with the gang's nodes, one
// line for each rank in rank order; `output_path`: for what it prints.
RankCommand LauncherCommand(const v1::RunSpec& spec, const StartContext& context,
                            const std::string& host_file, const std::string& output_path);

}  // namespace assay::agent

#endif  // WORKER_AGENT_WORKLOAD_LAUNCHER_H_
