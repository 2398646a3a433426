// Where the windows of a pooling lie in the convolution's padded, channels-last input.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_WINDOWS_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_WINDOWS_H_

#include <algorithm>
#include <cstdint>

#include "worker/engine/backend.h"
#include "worker/engine/backends/onednn/padded_input.h"

namespace assay {

// Elements between neighbours in the padded input.
struct WindowSteps {
  explicit WindowSteps(const PaddedInput& in)
      : voxel(in.conv.in_channels), line(in.width * voxel), plane(in.height * line) {}
  int64_t voxel, line, plane;
};

inline int64_t WindowsPerSample(const ConvShape& conv) {
  return conv.output(0) / 2 * (conv.output(1) / 2) * (conv.output(2) / 2);
}

// Up to kCount consecutive windows.
template <int64_t kCount>
struct Windows {
  // Those from `first_window` on, before `end`; samples are `sample_stride` elements apart.
  Windows(const PaddedInput& in, int64_t sample_stride, int64_t first_window, int64_t end)
      : first(first_window), count(std::min(kCount, end - first_window)) {
    const WindowSteps steps(in);
    const int64_t height = in.conv.output(1) / 2, width = in.conv.output(2) / 2;
    const int64_t per_sample = WindowsPerSample(in.conv);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t sample = (first + i) / per_sample, window = (first + i) % per_sample;
      const int64_t w = window % width, h = window / width % height, d = window / (width * height);
      offset[i] = static_cast<int32_t>(sample * sample_stride + 2 * d * steps.plane +
                                       2 * h * steps.line + 2 * w * steps.voxel);
    }
  }

  int64_t first, count;
  int32_t offset[kCount];  // of each window's first tap in the padded input
};

// Loops over windows that exist once per kernel extent and per number of segments and vectors of a
// segment that one pass keeps in registers.
template <typename Loops>
struct SizedLoops {
  int64_t kernel;
  int64_t pass_segments;
  int64_t pass_vectors;
  Loops loops;

  template <int64_t kKernel, int64_t kSegments, int64_t kVectors>
  static constexpr SizedLoops Of() {
    return {kKernel, kSegments, kVectors, Loops::template Of<kKernel, kSegments, kVectors>()};
  }

  // Passes divide a segment's vectors, and must take all of them where they take several segments.
  bool Fits(int64_t conv_kernel, int64_t vectors) const {
    return kernel == conv_kernel &&
           (pass_segments > 1 ? vectors == pass_vectors : vectors % pass_vectors == 0);
  }
};

// The loops for a shape, or null: none fit. Up to 27 of the 32 vector registers hold sums or
// weights. Loops::Of<kernel, segments, vectors>() makes one set of them.
template <typename Loops>
const Loops* LoopsFor(const ConvShape& conv) {
  using Sized = SizedLoops<Loops>;
  static constexpr Sized kLoops[] = {
      Sized::template Of<3, 9, 1>(), Sized::template Of<3, 9, 2>(),  Sized::template Of<3, 9, 3>(),
      Sized::template Of<3, 3, 6>(), Sized::template Of<3, 1, 12>(), Sized::template Of<2, 4, 1>(),
      Sized::template Of<2, 4, 2>(), Sized::template Of<2, 4, 4>(),  Sized::template Of<2, 1, 8>()};
  constexpr int64_t kLanes = PaddedInput::kLanes;
  const int64_t vectors = (conv.kernel * conv.in_channels + kLanes - 1) / kLanes;
  for (const Sized& sized : kLoops)
    if (sized.Fits(conv.kernel, vectors)) return &sized.loops;
  return nullptr;
}

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_WINDOWS_H_
