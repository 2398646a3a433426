// The table of compute backends that this build has.

#ifndef WORKER_ENGINE_BACKENDS_REGISTRY_H_
#define WORKER_ENGINE_BACKENDS_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/engine/backend.h"
#include "worker/engine/engine_choice.h"

namespace assay {

struct BackendOptions {
  int device = 0;  // which GPU of those this process sees
  // Of a GPU, to look for a fault: each call by itself instead of in recordings; a file to which
  // each call is written with its time (cuda/call_trace.h), empty: none.
  bool is_call_by_call = false;
  std::string trace_path;
  bool fuses_blocks = false;  // of a GPU, as CudaOptions has it
  // Of a GPU: whether its library's engines are timed for each convolution and the quickest taken,
  // but for those that are stored (cuda/engine_chooser.h); else the library's first are. Others do
  // not choose.
  bool times_engines = false;
  EngineChoices stored_engines;
};

// `name`: "reference" (slow, obvious), on a CPU "onednn" (float32) or "onednn-bf16" (see
// engine/backends/onednn/onednn_backend.h; OMP_NUM_THREADS decides on threads), or on a GPU "cuda"
// (float32), "cuda-tf32" or "cuda-bf16" (engine/backends/cuda/number.h).
// NOT_FOUND: no such backend; the message lists those there are. UNAVAILABLE: its device, driver or
// instructions are absent; the message says what to do. INVALID_ARGUMENT: options that the backend
// does not have, or a trace that cannot be written.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name,
                                                     const BackendOptions& options = {});

// Names that MakeBackend knows, whether or not their device is there.
std::vector<std::string> BackendNames();

// Those of them that work on this machine, best first, float32 before shorter numbers. Takes
// seconds where there is a GPU. `refusals`: what is said of each of the others; null: nobody asks.
std::vector<std::string> UsableBackendNames(std::vector<std::string>* refusals = nullptr);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_REGISTRY_H_
