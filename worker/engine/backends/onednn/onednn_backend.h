// Training on CPU cores: convolutions and dense layers by oneDNN, the rest by our own loops.
//
// Host memory and operations on tensors of a few kilobytes are those of the reference backend.
// OMP_NUM_THREADS decides how many threads work.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_BACKEND_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"

namespace assay {

// UNAVAILABLE: oneDNN refuses this machine.
absl::StatusOr<std::unique_ptr<Backend>> MakeOnednnBackend();

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_BACKEND_H_
