// Which layers of a model are recomputed so that it fits into a given memory.

#ifndef WORKER_ENGINE_RECOMPUTATION_H_
#define WORKER_ENGINE_RECOMPUTATION_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "worker/engine/sequence_layer.h"
#include "worker/engine/shape.h"

namespace assay {

// What a model trains in.
struct MemoryLimit {
  int64_t bytes = 0;         // 0: as much as it takes
  int parameter_copies = 0;  // what else has as many numbers as the parameters: moments, sums
};

// What was chosen.
struct Recomputation {
  int64_t segments = 0;    // runs of layers, each recomputed as a whole
  double flops_share = 0;  // arithmetic that runs twice, of the Forward of one batch
};

// Makes the layers of `model` such that `planned_bytes`, which plans them anew, is at most `limit`,
// and what runs twice costs as little as was found: nothing where they fit as they are. `model`
// begins with a batch of shape `input`.
//
// Candidates are cuts of every sequence of layers into runs of about equal traffic, from coarse to
// fine; from each that fits, runs are taken back as long as it fits.
// RESOURCE_EXHAUSTED: none fits; the message names the least number of MiB that does. Errors of
// `planned_bytes`.
absl::StatusOr<Recomputation> ChooseRecomputation(
    SequenceLayer* model, const Shape& input, size_t limit,
    absl::FunctionRef<absl::StatusOr<size_t>()> planned_bytes);

}  // namespace assay

#endif  // WORKER_ENGINE_RECOMPUTATION_H_
