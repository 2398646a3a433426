// An agent that a batch system has started: on each node of a job, one, for as long as the job is.

#ifndef WORKER_AGENT_FLEET_H_
#define WORKER_AGENT_FLEET_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "assay/v1/config.pb.h"

namespace assay::agent {

// What Slurm tells a task of a step by its environment.
struct SlurmTask {
  std::string job;      // SLURM_JOB_ID
  std::string node_id;  // SLURM_NODEID: of the job's nodes, from 0
  std::string node;     // SLURMD_NODENAME
};

// FAILED_PRECONDITION outside of a Slurm step.
absl::StatusOr<SlurmTask> ReadSlurmTask();

// The configuration of this node's agent: `directory`/worker.textproto (server/launch/slurm) with
// a name, <name of directory>-<node_id>, labels slurm_job and node, the token of that name,
// and as data directory a new one below that which the file names. Also makes that, for this user
// alone.
absl::StatusOr<v1::WorkerConfig> MakeFleetConfig(const std::string& directory,
                                                 const SlurmTask& task);

// The configuration of an agent on the coordinator's host that delivers what the agent `name` of
// the job left in `directory`: its data directory is SalvageDirectory.
absl::StatusOr<v1::WorkerConfig> MakeSalvageConfig(const std::string& directory,
                                                   const std::string& name);

// <directory>/salvage/<name>: where the agent of that name leaves what it could not deliver.
std::string SalvageDirectory(const std::string& directory, const std::string& name);

// Waits until the coordinator has put the token there. DEADLINE_EXCEEDED after `patience`.
absl::Status AwaitToken(const v1::WorkerConfig& config, absl::Duration patience);

}  // namespace assay::agent

#endif  // WORKER_AGENT_FLEET_H_
