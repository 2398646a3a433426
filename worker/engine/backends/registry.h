// The table of compute backends that this build has.

#ifndef WORKER_ENGINE_BACKENDS_REGISTRY_H_
#define WORKER_ENGINE_BACKENDS_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/engine/backend.h"

namespace assay {

// `name`: "reference" (slow, obvious) or "onednn" (CPU; OMP_NUM_THREADS decides on threads).
// NOT_FOUND: no such backend; the message lists those there are. UNAVAILABLE: its device is absent.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name);

// Names that MakeBackend knows, best first.
std::vector<std::string> BackendNames();

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_REGISTRY_H_
