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
#include "worker/engine/spatial.h"

namespace assay {

struct CosmoflowSpec {
  int64_t batch = 4;          // samples per step of this process
  int64_t cube_edge = 128;    // a multiple of 32
  int64_t kernel = 3;         // 3, or 2 as in v0.7
  int64_t base_filters = 32;  // of the first convolution; the closed division demands 32
  double dropout = 0.5;       // rate, in [0, 1)
  double l2 = 0;              // on the kernels of the two hidden dense layers: adds l2 * sum(w^2)
  SpatialGrid grid;           // how ranks divide each cube; 32 voxels per part or a multiple
};

inline constexpr int64_t kCosmoflowChannels = 4;
inline constexpr int64_t kCosmoflowOutputs = 4;

// INVALID_ARGUMENT: a field out of range; the message names it and says what is allowed.
absl::Status Validate(const CosmoflowSpec& spec);

// A rank's block of the cube along D (axis 0) or H (axis 1), with the halo of the first convolution
// where the axis is divided: read with the sample, it needs no message.
Interval CosmoflowBlock(const CosmoflowSpec& spec, const SpatialPlace& place, size_t axis);

// A committed model; input (batch, D, H, edge, 4) int16, output (batch, 4). D and H: of
// CosmoflowBlock; without a grid the edge.
// `group`: null unless the spec has a grid, which is the group's; must outlive the model. All
// members of a group get the same output for the same samples; the gradients of the convolutions
// are such that the plain mean over all ranks is right (GatherLayer).
// `trained`: null, or the model whose parameters this one evaluates (Model::CommitForEvaluation):
// of a spec that differs in the batch only. `limit`: of Model::Commit. Errors of Validate;
// RESOURCE_EXHAUSTED: not enough memory.
absl::StatusOr<std::unique_ptr<Model>> MakeCosmoflow(const CosmoflowSpec& spec, Backend* backend,
                                                     SpatialGroup* group = nullptr,
                                                     const Model* trained = nullptr,
                                                     const MemoryLimit& limit = {});

}  // namespace assay

#endif  // WORKER_MODELS_COSMOFLOW_H_
