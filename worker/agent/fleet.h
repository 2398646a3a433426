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

// Where the agents of a job find what they are told (server/launch/slurm/job_directory.h).
struct FleetPlace {
  std::string directory;  // shared with the coordinator; empty: none, it comes on standard input
  std::string name;       // a12, with which the names of the agents begin
};

// A shared directory, by whose name the agents are called.
FleetPlace SharedPlace(const std::string& directory);

// The configuration of this node's agent: that of all agents of the job with a name,
// <name>-<node_id>, labels slurm_job and node, the token of that name unless it enrols by munge,
// and as data directory a new one below that which it names. Also makes that, for this user
// alone.
absl::StatusOr<v1::WorkerConfig> MakeFleetConfig(const FleetPlace& place, const SlurmTask& task);

// The configuration of an agent on the coordinator's host that delivers what the agent `name` of
// the job left in `directory`: its data directory is SalvageDirectory. It enrols by a token,
// however the job's agents did.
absl::StatusOr<v1::WorkerConfig> MakeSalvageConfig(const std::string& directory,
                                                   const std::string& name);

// <directory>/salvage/<name>: where the agent of that name leaves what it could not deliver.
std::string SalvageDirectory(const std::string& directory, const std::string& name);

// Waits until the coordinator has put the token there. DEADLINE_EXCEEDED after `patience`.
absl::Status AwaitToken(const v1::WorkerConfig& config, absl::Duration patience);

}  // namespace assay::agent

#endif  // WORKER_AGENT_FLEET_H_
