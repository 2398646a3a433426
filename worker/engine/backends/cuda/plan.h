// How an operation of the engine becomes calls of a Device: layouts, padding, workspaces, stages of
// sums. Pure functions, so that they are tested without a GPU.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_PLAN_H_
#define WORKER_ENGINE_BACKENDS_CUDA_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/backend.h"
#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/kernels.h"
#include "worker/engine/maps.h"
#include "worker/engine/shape.h"

namespace assay::cuda {

// --- Sums ---

// A sum has at most this many columns, and then its stages never leave more sums than these.
inline constexpr int64_t kMaxColumns = 1 << 16;
inline constexpr size_t kMaxFoldSums = size_t{5} * kMaxColumns;

// Numbers of results of the Folds that sum the rows of a (rows, columns); the last is 1. Two
// stages where there are 32 columns or more, as in every map. `width`: columns that a thread of the
// first takes.
std::vector<int64_t> FoldStages(int64_t rows, int64_t columns, int64_t width = 1);
// Sums that the stages leave for each other, two buffers taking turns.
size_t FoldSums(int64_t rows, int64_t columns, int64_t width = 1);
// The width of a VecFold.
inline constexpr int kFoldWidth = 4;

// --- Loops over maps ---

// Every how many rows a thread takes one, of which a kernel with `vectors` threads for each then
// starts stride * vectors: enough to fill a GPU, but each with several rows where there are many.
int64_t RowStride(int64_t rows, int64_t vectors);
// Of how many places of a row, at most, a thread of a depthwise convolution computes the results
// one after the other. `rows`: of the map; `places`: that a segment of it could have.
int32_t SegmentLength(int64_t rows, int64_t places, int64_t vectors);
// Of how many places it sums the weights' gradients.
int64_t SumStrip(int64_t rows, int64_t vectors);

// --- Convolutions ---

// How a convolution is given to cuDNN, and to our own loops.
struct ConvolutionLayout {
  Shape x, w, y;               // as the engine has them
  DirectShape direct;          // the same, for our loops
  ConvolutionProblem problem;  // as cuDNN sees it: x and y channels last; w (out, k, k, k, in)
  int64_t groups = 1;

  // Channels of x with zeros, of which the engine's w knows nothing.
  int64_t empty_channels() const { return direct.in_channels - direct.in_group * groups; }
  int64_t packed_weights() const;  // elements of the problem's w
};
// `empty_channels`: as ConvPoolShape has it.
ConvolutionLayout LayoutOf(const ConvShape& conv, int64_t empty_channels = 0);
ConvolutionLayout LayoutOf(const Conv2dShape& conv);

// The layout's problem for one pass.
ConvolutionProblem ProblemOf(const ConvolutionLayout& layout, Direction direction,
                             Precision precision);
// The forward pass with an epilogue.
ConvolutionProblem ProblemOf(const ConvolutionLayout& layout, Epilogue epilogue,
                             Precision precision, size_t max_workspace);

// --- Dense layers ---

// The row-major c (rows, columns) = op(a) op(b), as a column-major product of b and a.
struct RowMajorProduct {
  bool transpose_a, transpose_b;
  int64_t rows, columns, inner;
};
// A bias then belongs to columns of the row-major c.
MatmulCall MatmulOf(const RowMajorProduct& product, const void* a, const void* b, void* c,
                    ProductNumbers numbers);

// --- Optimizers ---

// How tensors that lie side by side are cut, for LAMB's lengths.
struct Chunks {
  std::vector<Chunk> chunks;
  std::vector<int64_t> first_chunks;  // of each tensor, and behind the last
};
Chunks ChunksOf(std::span<const int64_t> sizes);

// --- Memory ---

// Parts of one piece of memory, each at a multiple of 256 bytes.
class ScratchPlan {
 public:
  // The offset of a new part.
  size_t Add(size_t bytes);
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_PLAN_H_
