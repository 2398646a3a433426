// How the threads and cores of a node are shared among the processes that it starts.

#ifndef WORKER_AGENT_WORKLOAD_CORES_H_
#define WORKER_AGENT_WORKLOAD_CORES_H_

#include <vector>

#include "assay/v1/config.pb.h"

namespace assay::agent {

// At least 1 for each of `process_count`.
int ThreadsPerRank(const v1::WorkerConfig& worker, int process_count);

// Consecutive cores for each process; all of them for every process if there are fewer than
// processes. Empty: the configuration pins none.
std::vector<int> CoresOfRank(const v1::WorkerConfig& worker, int local_rank, int process_count);

}  // namespace assay::agent

#endif  // WORKER_AGENT_WORKLOAD_CORES_H_
