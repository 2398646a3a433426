// CosmoFlow: regresses four cosmological parameters from a cube of dark-matter counts at four
// redshifts.
//
// Five times {convolution, bias, leaky ReLU 0.3, max pooling by 2} with filters doubling from
// `base_filters`; dense 128 and 64 with leaky ReLU and dropout; dense 4 with 1.2 * tanh.
// Source: MLPerf HPC CosmoFlow reference (mlcommons/hpc, cosmoflow/models/cosmoflow.py, v1.0 and
// later; kernel 2 reproduces v0.7).

#ifndef WORKER_MODELS_COSMOFLOW_H_
#define WORKER_MODELS_COSMOFLOW_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/model.h"

namespace assay {

struct CosmoflowSpec {
  int64_t batch = 4;          // samples per step of this process
  int64_t cube_edge = 128;    // a multiple of 32
  int64_t kernel = 3;         // 3, or 2 as in v0.7
  int64_t base_filters = 32;  // of the first convolution; the closed division demands 32
  double dropout = 0.5;       // rate, in [0, 1)
  double l2 = 0;              // on the kernels of the two hidden dense layers: adds l2 * sum(w^2)
};

inline constexpr int64_t kCosmoflowChannels = 4;
inline constexpr int64_t kCosmoflowOutputs = 4;

// INVALID_ARGUMENT: a field out of range; the message names it and says what is allowed.
absl::Status Validate(const CosmoflowSpec& spec);

// A committed model; input (batch, edge, edge, edge, 4) int16, output (batch, 4).
// Errors of Validate; RESOURCE_EXHAUSTED: not enough memory.
absl::StatusOr<std::unique_ptr<Model>> MakeCosmoflow(const CosmoflowSpec& spec, Backend* backend);

}  // namespace assay

#endif  // WORKER_MODELS_COSMOFLOW_H_
