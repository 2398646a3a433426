// DeepCAM: finds tropical cyclones and atmospheric rivers in snapshots of the CAM5 climate model,
// pixel by pixel.
//
// DeepLabv3+ with a modified Xception as encoder, output stride 16; 56,454,720 parameters in 301
// tensors at the reference's width. Source: MLPerf HPC DeepCAM reference (mlcommons/hpc, deepcam,
// architecture/deeplab_xception.py). Where the reference is ambiguous:
//   - the decoder sees block 1's result after a ReLU, because the reference's in-place ReLU acts on
//     the very tensor that it kept for the decoder;
//   - the last convolution of blocks 1 to 3 and 20 has no batch normalisation of its own;
//   - strided convolutions pad symmetrically.

#ifndef WORKER_MODELS_DEEPCAM_H_
#define WORKER_MODELS_DEEPCAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/model.h"

namespace assay {

struct DeepcamSpec {
  int64_t batch = 1;           // samples per step of this process
  int64_t height = 768;        // latitude, a multiple of 16
  int64_t width = 1152;        // longitude, a multiple of 16
  int64_t base_filters = 32;   // of the first convolution; every width scales with it
  int64_t middle_blocks = 16;  // identical blocks of the encoder's middle
  // The closed division demands 768, 1152, 32 and 16.
};

inline constexpr int64_t kDeepcamChannels = 16;
inline constexpr int64_t kDeepcamClasses = 3;  // background, tropical cyclone, atmospheric river

// f^(-1/8) of the classes' frequencies in the reference's training split.
std::vector<double> DeepcamClassWeights();

// INVALID_ARGUMENT: a field out of range; the message names it and says what is allowed.
absl::Status Validate(const DeepcamSpec& spec);

// A committed model; input float32 (batch, height, width, 16), scaled to about [0, 1]; output
// (batch, height, width, 3): scores. `trained` and `limit` as for MakeCosmoflow. Errors of
// Validate; INVALID_ARGUMENT: the backend lacks maps; RESOURCE_EXHAUSTED: not enough memory.
absl::StatusOr<std::unique_ptr<Model>> MakeDeepcam(const DeepcamSpec& spec, Backend* backend,
                                                   const Model* trained = nullptr,
                                                   const MemoryLimit& limit = {});

}  // namespace assay

#endif  // WORKER_MODELS_DEEPCAM_H_
