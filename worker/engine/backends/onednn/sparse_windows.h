// Where the windows of a pooling lie in the convolution's padded, channels-last input.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_WINDOWS_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_WINDOWS_H_

#include <algorithm>
#include <cstdint>

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

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_WINDOWS_H_
