#include "worker/engine/backends/cuda/plan.h"

#include <algorithm>

namespace assay::cuda {
namespace {

constexpr size_t kAlignment = 256;         // of cudaMalloc, and enough for every library
constexpr int64_t kFoldThreads = 1 << 16;  // of a first stage: about a third of an H200's
constexpr int64_t kFoldFactor = 32;        // rows that a thread of a later stage sums

int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

using Extents = std::array<int64_t, 5>;

// Strides of (slowest, axis 1, D, H, W) where axis 1 lies innermost in memory.
Extents ChannelsLast(const Extents& e) {
  return {e[1] * e[2] * e[3] * e[4], 1, e[1] * e[3] * e[4], e[1] * e[4], e[1]};
}

}  // namespace

std::vector<int64_t> FoldStages(int64_t rows, int64_t columns) {
  const int64_t most = std::max<int64_t>(1, kFoldThreads / columns);
  std::vector<int64_t> stages = {std::min(most, CeilDiv(rows, kFoldFactor))};
  while (stages.back() > 1)
    stages.push_back(CeilDiv(stages.back(), kFoldFactor));
  return stages;
}

size_t FoldDoubles(int64_t rows, int64_t columns) {
  const std::vector<int64_t> stages = FoldStages(rows, columns);
  const int64_t second = stages.size() > 1 ? stages[1] : 0;
  return static_cast<size_t>((stages[0] + second) * columns);
}

DirectShape DirectShapeOf(const ConvShape& conv) {
  return {.depth = conv.input[0],
          .height = conv.input[1],
          .width = conv.input[2],
          .in_channels = conv.in_channels,
          .out_depth = conv.output(0),
          .out_height = conv.output(1),
          .out_width = conv.output(2),
          .out_channels = conv.out_channels,
          .kernel = conv.kernel,
          .before_depth = conv.pad_before[0],
          .before_height = conv.pad_before[1],
          .before_width = conv.pad_before[2]};
}

ConvolutionLayout LayoutOf(const ConvShape& conv) {
  ConvolutionLayout layout = {.is_padded_by_copy = conv.pad_before != conv.pad_after, .conv = conv};
  if (layout.is_padded_by_copy) {
    for (size_t axis = 0; axis < 3; ++axis)
      layout.conv.input[axis] += conv.pad_before[axis] + conv.pad_after[axis];
    layout.conv.pad_before = layout.conv.pad_after = {};
  }
  const std::array<int64_t, 3>& outer = layout.conv.input;
  const std::array<int64_t, 3> before =
      layout.is_padded_by_copy ? conv.pad_before : std::array<int64_t, 3>{};
  layout.inset = {.depth = conv.input[0],
                  .height = conv.input[1],
                  .width = conv.input[2],
                  .channels = conv.in_channels,
                  .outer_depth = outer[0],
                  .outer_height = outer[1],
                  .outer_width = outer[2],
                  .before_depth = before[0],
                  .before_height = before[1],
                  .before_width = before[2]};
  layout.padded_elements = layout.conv.x().elements();
  return layout;
}

ConvolutionProblem ProblemOf(const ConvolutionLayout& layout, Direction direction,
                             Precision precision) {
  const ConvShape& conv = layout.conv;
  ConvolutionProblem problem = {
      .direction = direction, .precision = precision, .padding = conv.pad_before};
  problem.x = {conv.batch, conv.in_channels, conv.input[0], conv.input[1], conv.input[2]};
  problem.w = {conv.out_channels, conv.in_channels, conv.kernel, conv.kernel, conv.kernel};
  problem.y = {conv.batch, conv.out_channels, conv.output(0), conv.output(1), conv.output(2)};
  problem.x_strides = ChannelsLast(problem.x);
  problem.w_strides = ChannelsLast(problem.w);
  problem.y_strides = ChannelsLast(problem.y);
  return problem;
}

// A row-major matrix is the transpose of the column-major one in the same memory, and
// c = op(a) op(b) is c' = op(b)' op(a)'.
MatmulCall MatmulOf(const RowMajorProduct& p, const float* a, const float* b, float* c,
                    bool may_round) {
  return {.transpose_a = p.transpose_b,
          .transpose_b = p.transpose_a,
          .m = p.columns,
          .n = p.rows,
          .k = p.inner,
          .a_leading = p.transpose_b ? p.inner : p.columns,
          .b_leading = p.transpose_a ? p.rows : p.inner,
          .c_leading = p.columns,
          .a = b,
          .b = a,
          .c = c,
          .may_round = may_round};
}

size_t ScratchPlan::Add(size_t bytes) {
  const size_t offset = (bytes_ + kAlignment - 1) / kAlignment * kAlignment;
  bytes_ = offset + bytes;
  return offset;
}

}  // namespace assay::cuda
