#include "worker/engine/thread_pinning.h"

#include <sched.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace assay {
namespace {

// Of the calling thread.
std::vector<size_t> UsableCores() {
  cpu_set_t set;
  std::vector<size_t> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

bool PinThisThread(size_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

}  // namespace

int PinComputeThreads() {
  const std::vector<size_t> cores = UsableCores();
  size_t threads = 0;
#pragma omp parallel reduction(+ : threads)
  ++threads;
  if (threads != cores.size() || std::getenv("OMP_PROC_BIND") != nullptr) return 0;
  int pinned = 0;
  // One turn for each thread, the first for the calling one.
#pragma omp parallel for schedule(static, 1) reduction(+ : pinned)
  for (size_t i = 0; i < threads; ++i)
    if (i > 0 && PinThisThread(cores[i])) ++pinned;
  return pinned;
}

}  // namespace assay
