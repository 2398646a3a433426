#include "worker/engine/backends/cuda/plan.h"

#include <algorithm>
#include <limits>

#include "common/log.h"

namespace assay::cuda {
namespace {

constexpr size_t kAlignment = 256;         // of cudaMalloc, and enough for every library
constexpr int64_t kFoldThreads = 1 << 17;  // of a first stage: about half of an H200's
constexpr int64_t kFoldRows = 16;          // that a thread of a first stage sums, at least
constexpr int64_t kBlockRows = 4096;       // that a block of a later stage sums, at most

constexpr int64_t kMapThreads = 1 << 18;  // of a loop over a map: nearly an H200's
constexpr int64_t kMostRows = 16;         // of one of its threads
constexpr int64_t kSumThreads = 1 << 16;  // of a sum that leaves much behind
constexpr int64_t kLeastSegment = 8, kMostSegment = 32;
constexpr int64_t kLeastStrip = 16, kMostStrip = 256;

int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

using Extents = std::array<int64_t, 5>;

int64_t ElementsOf(const Extents& e) {
  return e[0] * e[1] * e[2] * e[3] * e[4];
}

// Strides of (slowest, axis 1, D, H, W) where axis 1 lies innermost in memory.
Extents ChannelsLast(const Extents& e) {
  return {e[1] * e[2] * e[3] * e[4], 1, e[1] * e[3] * e[4], e[1] * e[4], e[1]};
}

// Models bound extents, kernels and strides to thousands.
int32_t Small(int64_t value) {
  CHECK(value >= 0 && value <= std::numeric_limits<int32_t>::max()) << "value=" << value;
  return static_cast<int32_t>(value);
}

ConvolutionProblem ProblemOf(const DirectShape& s, int64_t batch,
                             const std::array<int64_t, 3>& after) {
  ConvolutionProblem problem;
  problem.x = {batch, s.in_channels, s.depth.in, s.height.in, s.width.in};
  // What is in groups never reaches cuDNN.
  const int64_t in = s.out_group == s.out_channels ? s.in_channels : s.in_group;
  problem.w = {s.out_channels, in, s.depth.kernel, s.height.kernel, s.width.kernel};
  problem.y = {batch, s.out_channels, s.depth.out, s.height.out, s.width.out};
  problem.x_strides = ChannelsLast(problem.x);
  problem.w_strides = ChannelsLast(problem.w);
  problem.y_strides = ChannelsLast(problem.y);
  problem.before = {s.depth.before, s.height.before, s.width.before};
  problem.after = after;
  problem.stride = {s.depth.stride, s.height.stride, s.width.stride};
  problem.dilation = {s.depth.dilation, s.height.dilation, s.width.dilation};
  return problem;
}

// Axes: D, H, W. `after`: zeros behind x.
struct Axes {
  std::array<DirectAxis, 3> all;
  std::array<int64_t, 3> after;
};

ConvolutionLayout LayoutOf(const Shape& x, const Shape& w, const Shape& y, const Axes& axes,
                           int64_t groups) {
  const int64_t in = x[x.rank() - 1], out = y[y.rank() - 1];
  ConvolutionLayout layout = {.x = x, .w = w, .y = y, .groups = groups};
  layout.direct = {.depth = axes.all[0],
                   .height = axes.all[1],
                   .width = axes.all[2],
                   .in_channels = in,
                   .out_channels = out,
                   .in_group = w[w.rank() - 2],
                   .out_group = out / groups,
                   .rows = y.elements() / out,
                   .weights = w.elements()};
  layout.problem = ProblemOf(layout.direct, x[0], axes.after);
  return layout;
}

}  // namespace

std::vector<int64_t> FoldStages(int64_t rows, int64_t columns, int64_t width) {
  // Wide threads have more under way each, so that half as many do.
  const int64_t most = width == 1 ? kFoldThreads / columns
                                  : std::min(kFoldThreads / 2 * width / columns, kBlockRows);
  std::vector<int64_t> stages = {std::min(std::max<int64_t>(1, most), CeilDiv(rows, kFoldRows))};
  while (stages.back() > 1)
    stages.push_back(CeilDiv(stages.back(), kBlockRows));
  return stages;
}

size_t FoldSums(int64_t rows, int64_t columns, int64_t width) {
  const std::vector<int64_t> stages = FoldStages(rows, columns, width);
  const int64_t second = stages.size() > 1 ? stages[1] : 0;
  return static_cast<size_t>((stages[0] + second) * columns);
}

int64_t RowStride(int64_t rows, int64_t vectors) {
  return CeilDiv(rows, std::clamp<int64_t>(rows * vectors / kMapThreads, 1, kMostRows));
}

int32_t SegmentLength(int64_t rows, int64_t places, int64_t vectors) {
  const int64_t each = rows * places * vectors / kMapThreads;
  return static_cast<int32_t>(std::clamp<int64_t>(each, kLeastSegment, kMostSegment));
}

int64_t SumStrip(int64_t rows, int64_t vectors) {
  return std::clamp<int64_t>(rows * vectors / kSumThreads, kLeastStrip, kMostStrip);
}

int64_t ConvolutionLayout::packed_weights() const {
  return ElementsOf(problem.w);
}

ConvolutionLayout LayoutOf(const ConvShape& conv, int64_t empty_channels) {
  Axes axes = {.after = conv.pad_after};
  for (size_t i = 0; i < axes.all.size(); ++i)
    axes.all[i] = {.in = Small(conv.input[i]),
                   .out = Small(conv.output(i)),
                   .kernel = Small(conv.kernel),
                   .before = Small(conv.pad_before[i])};
  return LayoutOf(conv.x().WithLast(conv.in_channels + empty_channels), conv.w(), conv.y(), axes,
                  1);
}

ConvolutionLayout LayoutOf(const Conv2dShape& conv) {
  const auto axis = [&conv](int64_t extent) {
    return DirectAxis{.in = Small(extent),
                      .out = Small(conv.Output(extent)),
                      .kernel = Small(conv.kernel),
                      .before = Small(conv.pad()),
                      .stride = Small(conv.stride),
                      .dilation = Small(conv.dilation)};
  };
  ConvolutionLayout layout = LayoutOf(conv.x(), conv.w(), conv.y(),
                                      {.all = {DirectAxis{}, axis(conv.height), axis(conv.width)},
                                       .after = {0, conv.pad(), conv.pad()}},
                                      conv.groups);
  layout.problem.dimensions = 2;
  return layout;
}

ConvolutionProblem ProblemOf(const ConvolutionLayout& layout, Direction direction,
                             Precision precision) {
  ConvolutionProblem problem = layout.problem;
  problem.direction = direction;
  problem.precision = precision;
  return problem;
}

ConvolutionProblem ProblemOf(const ConvolutionLayout& layout, Epilogue epilogue,
                             Precision precision, size_t max_workspace) {
  ConvolutionProblem problem = ProblemOf(layout, Direction::kForward, precision);
  problem.epilogue = epilogue;
  problem.max_workspace = max_workspace;
  return problem;
}

// A row-major matrix is the transpose of the column-major one in the same memory, and
// c = op(a) op(b) is c' = op(b)' op(a)'.
MatmulCall MatmulOf(const RowMajorProduct& p, const void* a, const void* b, void* c,
                    ProductNumbers numbers) {
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
          .numbers = numbers};
}

Chunks ChunksOf(std::span<const int64_t> sizes) {
  Chunks result;
  int64_t first = 0;
  for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
    result.first_chunks.push_back(std::ssize(result.chunks));
    for (int64_t done = 0; done < sizes[tensor]; done += kChunkElements)
      result.chunks.push_back({.first = first + done,
                               .size = Small(std::min(kChunkElements, sizes[tensor] - done)),
                               .tensor = Small(static_cast<int64_t>(tensor))});
    first += sizes[tensor];
  }
  result.first_chunks.push_back(std::ssize(result.chunks));
  return result;
}

size_t ScratchPlan::Add(size_t bytes) {
  const size_t offset = (bytes_ + kAlignment - 1) / kAlignment * kAlignment;
  bytes_ = offset + bytes;
  return offset;
}

}  // namespace assay::cuda
