// Lets tests that hold their tensors in host memory run on a backend that has memory of its own:
// every operation copies its tensors over, runs, and copies them back.

#ifndef TESTS_WORKER_ENGINE_STAGED_BACKEND_H_
#define TESTS_WORKER_ENGINE_STAGED_BACKEND_H_

#include <memory>

#include "worker/engine/backend.h"

namespace assay {

// Allocates on the host; is_host_memory.
std::unique_ptr<Backend> StageThroughHost(std::unique_ptr<Backend> backend);

}  // namespace assay

#endif  // TESTS_WORKER_ENGINE_STAGED_BACKEND_H_
