#include "worker/agent/workload/cores.h"

#include <sched.h>

#include <algorithm>

namespace assay::agent {
namespace {

int UsableCoreCount() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

int ThreadsPerRank(const v1::WorkerConfig& worker, int process_count) {
  int core_count = worker.core_count();
  if (core_count == 0) core_count = worker.cores_size();
  if (core_count == 0) core_count = UsableCoreCount();
  return std::max(1, core_count / process_count);
}

std::vector<int> CoresOfRank(const v1::WorkerConfig& worker, int local_rank, int process_count) {
  const std::vector<int> all(worker.cores().begin(), worker.cores().end());
  const int share = static_cast<int>(all.size()) / process_count;
  if (share == 0) return all;
  const auto first = all.begin() + local_rank * share;
  return {first, first + share};
}

}  // namespace assay::agent
