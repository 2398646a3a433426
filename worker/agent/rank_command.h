// What one node's trainers are started with: a spec file, an environment and cores for each rank.

#ifndef WORKER_AGENT_RANK_COMMAND_H_
#define WORKER_AGENT_RANK_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/run_spec.pb.h"

#include "worker/agent/run_directory.h"
#include "worker/agent/trainer_group.h"

namespace assay::agent {

// INVALID_ARGUMENT if the spec makes no sense for one node: ranks, number, dataset path, spaces.
absl::Status CheckSpec(const v1::RunSpec& spec);

// The directory into which this node stages the dataset of the run.
std::string StageDirectory(const RunDirectory& directory, const v1::WorkerConfig& worker);

// The spec of one rank: local_rank and the paths are filled in.
v1::RunSpec SpecOfRank(const v1::RunSpec& spec, int local_rank, const RunDirectory& directory,
                       const v1::WorkerConfig& worker);

// The commands of all ranks of this node, without writing anything. The spec of local rank i is
// read from RankSpecPath(directory, i). Threads and cores are shared out evenly.
std::vector<RankCommand> CommandsOf(const v1::RunSpec& spec, const RunDirectory& directory,
                                    const v1::WorkerConfig& worker);
std::string RankSpecPath(const RunDirectory& directory, int local_rank);

}  // namespace assay::agent

#endif  // WORKER_AGENT_RANK_COMMAND_H_
