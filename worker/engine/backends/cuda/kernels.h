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
#include "worker/engine/backends/cuda/depthwise_kernels.h"
#include "worker/engine/backends/cuda/layer_kernels.h"
#include "worker/engine/backends/cuda/map_kernels.h"
#include "worker/engine/backends/cuda/optimizer_kernels.h"
#include "worker/engine/backends/cuda/sum_kernels.h"

namespace assay::cuda {

using Kernel = std::variant<
    // Layers
    LookUp, LookUpPlaces<4, 8>, Convert<float, Bfloat16>, Convert<Bfloat16, float>,
    Transpose<float, float>, Transpose<float, Bfloat16>, Transpose<Bfloat16, float>,
    PackWeights<float>, PackWeights<Bfloat16>, UnpackWeights<float>, UnpackWeights<Bfloat16>, Crop,
    Insert, MarkPositive, PoolForward<float, float, 1>, PoolForward<float, float, 4>,
    PoolForward<float, Bfloat16, 1>, PoolForward<float, Bfloat16, 4>,
    PoolForward<Bfloat16, float, 1>, PoolForward<Bfloat16, float, 8>,
    PoolForward<Bfloat16, Bfloat16, 1>, PoolForward<Bfloat16, Bfloat16, 8>,
    PoolBackward<float, float, 1>, PoolBackward<float, float, 4>, PoolBackward<float, Bfloat16, 1>,
    PoolBackward<float, Bfloat16, 4>, PoolBackward<Bfloat16, float, 1>,
    PoolBackward<Bfloat16, float, 8>, PoolBackward<Bfloat16, Bfloat16, 1>,
    PoolBackward<Bfloat16, Bfloat16, 8>, ActivationForward<float>, ActivationForward<Bfloat16>,
    ActivationBackward<float>, ActivationBackward<Bfloat16>, AddBias<float>, AddBias<Bfloat16>,
    Dropout, Multiply, SquaredErrorGradient,
    // Sums
    Fold<Values<float>, Scaled<float>>, Fold<Values<Bfloat16>, Scaled<float>>,
    Fold<Values<Bfloat16>, Scaled<Bfloat16>>, Fold<Squares, Scaled<float>>,
    Fold<SquaredDifferences, Scaled<float>>, Fold<PooledGradients<float>, Scaled<float>>,
    Fold<PooledGradients<Bfloat16>, Scaled<float>>, Fold<CrossEntropy, Scaled<float>>,
    Fold<ClassMatches, Both>, Fold<TapProducts<float>, Scaled<float>>,
    Fold<TapProducts<Bfloat16>, Scaled<float>>, Fold<Partials<double>, Scaled<float>>,
    Fold<Partials<double>, Scaled<Bfloat16>>, Fold<Offsets<float>, Moments<float>>,
    Fold<Offsets<Bfloat16>, Moments<Bfloat16>>, Fold<Partials<Pair>, Moments<float>>,
    Fold<Partials<Pair>, Moments<Bfloat16>>, VecFold<Offsets<float>, 4>,
    VecFold<Offsets<Bfloat16>, 4>, VecFold<NormalProducts<float>, 4>,
    VecFold<NormalProducts<Bfloat16>, 4>, Fold<NormalProducts<float>, Both>,
    Fold<NormalProducts<Bfloat16>, Both>, Fold<Partials<Pair>, Both>,
    // Convolutions
    DirectForward<float>, DirectForward<Bfloat16>, DirectData<float>, DirectData<Bfloat16>,
    Depthwise<float, 1>, Depthwise<float, 4>, Depthwise<Bfloat16, 1>, Depthwise<Bfloat16, 8>,
    DepthwiseStrided<float, 1>, DepthwiseStrided<float, 4>, DepthwiseStrided<Bfloat16, 1>,
    DepthwiseStrided<Bfloat16, 8>, DepthwiseStridedData<float, 1>, DepthwiseStridedData<float, 4>,
    DepthwiseStridedData<Bfloat16, 1>, DepthwiseStridedData<Bfloat16, 8>, DepthwiseTaps<float, 1>,
    DepthwiseTaps<float, 4>, DepthwiseTaps<Bfloat16, 1>, DepthwiseTaps<Bfloat16, 8>,
    DepthwiseStridedTaps<float, 1>, DepthwiseStridedTaps<float, 4>,
    DepthwiseStridedTaps<Bfloat16, 1>, DepthwiseStridedTaps<Bfloat16, 8>,
    // Maps
    Normalise<float, 1>, Normalise<float, 4>, Normalise<Bfloat16, 1>, Normalise<Bfloat16, 8>,
    NormaliseBackward<float, 1>, NormaliseBackward<float, 4>, NormaliseBackward<Bfloat16, 1>,
    NormaliseBackward<Bfloat16, 8>, MoveRunning, FoldChannels, FoldWeights<float>,
    FoldWeights<Bfloat16>, Combine<float>, Combine<Bfloat16>, Add<float, 1>, Add<float, 4>,
    Add<Bfloat16, 1>, Add<Bfloat16, 8>, KeepPositive<float, 1>, KeepPositive<float, 4>,
    KeepPositive<Bfloat16, 1>, KeepPositive<Bfloat16, 8>, CopyChannels<float>,
    CopyChannels<Bfloat16>, SpatialSpread<float>, SpatialSpread<Bfloat16>, CrossEntropyGradient,
    Argmax,
    // Optimizers
    Sgd, AdaptiveUpdate, ChunkSquares, TensorRatios, LambMove>;

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_KERNELS_H_
