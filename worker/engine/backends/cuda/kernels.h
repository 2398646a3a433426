// The operations that no library has, one element at a time: the same code runs on the GPU, one
// element per thread, and in the tests on the CPU, in a loop.
//
// Each struct is one operation with its arguments; its call operator computes element `i` of
// `count`, and elements may be computed in any order and at once. "rows" are positions of a tensor,
// "columns" its channels.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_KERNELS_H_

#include <variant>

#include "worker/engine/backends/cuda/convolution_kernels.h"
#include "worker/engine/backends/cuda/layer_kernels.h"
#include "worker/engine/backends/cuda/map_kernels.h"
#include "worker/engine/backends/cuda/optimizer_kernels.h"
#include "worker/engine/backends/cuda/sum_kernels.h"

namespace assay::cuda {

using Kernel = std::variant<
    // Layers
    LookUp, Convert<float, Bfloat16>, Convert<Bfloat16, float>, Transpose<float, float>,
    Transpose<float, Bfloat16>, Transpose<Bfloat16, float>, Pad<float, float>, Pad<float, Bfloat16>,
    Crop<float, float>, Crop<Bfloat16, float>, Insert, PoolForward<float>, PoolForward<Bfloat16>,
    PoolBackward<float>, PoolBackward<Bfloat16>, ActivationForward, ActivationBackward, Dropout,
    Multiply, SquaredErrorGradient,
    // Sums
    Fold<Values>, Fold<Squares>, Fold<SquaredDifferences>, Fold<PooledGradients>,
    Fold<PairedSquares>, Fold<SquaredOffsets>, Fold<NormalProducts>, Fold<CrossEntropy>,
    Fold<TapProducts>, Fold<Partials>,
    // Convolutions
    DirectForward, DirectData,
    // Maps
    Normalise, NormaliseBackward, Combine, KeepPositive, CopyChannels, SpatialSpread,
    CrossEntropyGradient, Argmax,
    // Optimizers
    Sgd, AdaptiveUpdate, LambMove>;

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_KERNELS_H_
