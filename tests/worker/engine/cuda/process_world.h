// Averages between processes of this host, each of which has loaded the faked device.

#ifndef TESTS_WORKER_ENGINE_CUDA_PROCESS_WORLD_H_
#define TESTS_WORKER_ENGINE_CUDA_PROCESS_WORLD_H_

#include <memory>
#include <string>

#include "tests/worker/engine/cuda/host_ranks.h"

namespace assay::cuda {

// Different every time, on this host.
std::string MakeProcessWorldId();

// In memory that is shared under this name, which the last that joins takes away. It has averages
// of all ranks, one at a time, of at most 4 MiB and 8 ranks; no messages. Null: it cannot be made.
std::shared_ptr<HostWorld> OpenProcessWorld(const std::string& id);

}  // namespace assay::cuda

#endif  // TESTS_WORKER_ENGINE_CUDA_PROCESS_WORLD_H_
