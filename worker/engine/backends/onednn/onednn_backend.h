// Training on CPU cores: convolutions and dense layers by oneDNN, the rest by our own loops.
//
// Host memory and operations on tensors of a few kilobytes are those of the reference backend.
// OMP_NUM_THREADS decides how many threads work.
//
// In bfloat16, blocks of convolution and pooling round the factors of their products and add up in
// float32. All else is float32 as ever: parameters, gradients, activations between layers, dense
// layers, losses, optimizers, and blocks whose channels the loops do not take. There are no
// operations on maps, where it does not pay (docs/adr/0256-bfloat16-on-cpus-where-it-pays.md).

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
