// Training on CPU cores: convolutions and dense layers by oneDNN, the rest by our own loops.
//
// Host memory and operations on tensors of a few kilobytes are those of the reference backend.
// OMP_NUM_THREADS decides how many threads work.
//
// In bfloat16, convolutions (but depthwise ones) and dense layers round the factors of their
// products and add up in float32. Parameters, gradients, activations between layers, normalisation,
// losses and optimizers are float32 as ever.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_BACKEND_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"

namespace assay {

// What numbers are multiplied.
enum class OnednnFactors { kFloat32, kBfloat16 };

// UNAVAILABLE: oneDNN refuses this machine, or its processor cannot multiply such numbers.
absl::StatusOr<std::unique_ptr<Backend>> MakeOnednnBackend(OnednnFactors factors);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_BACKEND_H_
