// Whether the device's library, asked for a block in one call, says of each maximum what we do.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_POOLED_TRIAL_H_
#define WORKER_ENGINE_BACKENDS_CUDA_POOLED_TRIAL_H_

#include "absl/status/status.h"

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// Runs a small block (Epilogue::kLeakyPool, bfloat16) of which maxima and places are known: how
// places are numbered and whether the slope holds for what is negative stands in no header.
// INVALID_ARGUMENT: the library has no such block, or says something else. Otherwise as ToStatus.
absl::Status TryPooledBlock(Device* device);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_POOLED_TRIAL_H_
