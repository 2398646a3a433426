#include "worker/engine/backends/onednn/kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "worker/engine/backends/onednn/map_kernels.h"
#include "worker/engine/backends/onednn/vector_clones.h"

namespace assay {
namespace {

using Floats = float __attribute__((vector_size(sizeof(float) * kPoolLanes)));
using Ints = int32_t __attribute__((vector_size(sizeof(int32_t) * kPoolLanes)));
using Bytes = uint8_t __attribute__((vector_size(kPoolLanes)));

// Elements from one position of a pooling window to the next; window position d*4 + h*2 + w.
struct WindowOffsets {
  explicit WindowOffsets(const PoolExtents& e) {
    for (int64_t i = 0; i < 8; ++i)
      at[i] = ((i / 4 * 2 * e.height + i / 2 % 2) * 2 * e.width + i % 2) * e.channels;
  }
  int64_t at[8];
};

// Where the windows of a row (batch, depth, height) of y start in x.
int64_t RowStart(const PoolExtents& e, int64_t row) {
  const int64_t plane = row / e.height;  // (batch, depth), as of y
  return (plane * 2 * 2 * e.height + row % e.height * 2) * 2 * e.width * e.channels;
}

// One row of y: `width` windows of `channels`.
ASSAY_VECTOR_CLONES
void PoolForwardRow(const PoolExtents& e, const float* x, const float* bias, float slope, float* y,
                    uint8_t* code) {
  const WindowOffsets offsets(e);
  for (int64_t w = 0; w < e.width; ++w, x += 2 * e.channels) {
    for (int64_t c = 0; c < e.channels; c += kPoolLanes, y += kPoolLanes, code += kPoolLanes) {
      Floats max;
      std::memcpy(&max, x + c, sizeof(max));
      Ints best = {};
      for (int32_t i = 1; i < 8; ++i) {
        Floats value;
        std::memcpy(&value, x + offsets.at[i] + c, sizeof(value));
        const Ints is_larger = value > max;
        max = is_larger ? value : max;
        best = is_larger ? Ints{} + i : best;
      }
      Floats sum;
      std::memcpy(&sum, bias + c, sizeof(sum));
      sum += max;
      const Ints is_positive = sum > 0;
      sum = is_positive ? sum : slope * sum;
      const Bytes bits = __builtin_convertvector(best | (is_positive & 8), Bytes);
      std::memcpy(y, &sum, sizeof(sum));
      std::memcpy(code, &bits, sizeof(bits));
    }
  }
}

// One row of dy: writes its windows of dx and adds to `sums` (channels).
ASSAY_VECTOR_CLONES
void PoolBackwardRow(const PoolExtents& e, const float* dy, const uint8_t* code, float slope,
                     float* dx, float* sums) {
  const WindowOffsets offsets(e);
  for (int64_t w = 0; w < e.width; ++w, dx += 2 * e.channels) {
    for (int64_t c = 0; c < e.channels; c += kPoolLanes, dy += kPoolLanes, code += kPoolLanes) {
      Bytes bytes;
      std::memcpy(&bytes, code, sizeof(bytes));
      const Ints bits = __builtin_convertvector(bytes, Ints);
      Floats gradient, sum;
      std::memcpy(&gradient, dy, sizeof(gradient));
      gradient = (bits & 8) != 0 ? gradient : slope * gradient;
      std::memcpy(&sum, sums + c, sizeof(sum));
      sum += gradient;
      std::memcpy(sums + c, &sum, sizeof(sum));
      const Ints best = bits & 7;
      for (int32_t i = 0; i < 8; ++i) {
        const Floats part = best == i ? gradient : Floats{};
        std::memcpy(dx + offsets.at[i] + c, &part, sizeof(part));
      }
    }
  }
}

ASSAY_VECTOR_CLONES
void SgdRange(float rate, float momentum, float decay, std::span<float> parameters,
              const float* __restrict gradients, float* __restrict velocity) {
  float* __restrict w = parameters.data();
  for (size_t i = 0; i < parameters.size(); ++i) {
    velocity[i] = momentum * velocity[i] - rate * (gradients[i] + decay * w[i]);
    w[i] += velocity[i];
  }
}

}  // namespace

void PoolForwardKernel(const PoolExtents& extents, const float* x, const float* bias, float slope,
                       float* y, uint8_t* code) {
  const int64_t row_size = extents.width * extents.channels;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < extents.batch * extents.depth * extents.height; ++row)
    PoolForwardRow(extents, x + RowStart(extents, row), bias, slope, y + row * row_size,
                   code + row * row_size);
}

void PoolBackwardKernel(const PoolExtents& extents, const float* dy, const uint8_t* code,
                        float slope, float* dx, float* dbias) {
  const int64_t row_size = extents.width * extents.channels;
  const int64_t planes = extents.batch * extents.depth;
  // One partial sum per plane, added up in order, so that threads do not change the result.
  std::vector<float> sums(static_cast<size_t>(planes * extents.channels));
#pragma omp parallel for schedule(static)
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t row = plane * extents.height; row < (plane + 1) * extents.height; ++row)
      PoolBackwardRow(extents, dy + row * row_size, code + row * row_size, slope,
                      dx + RowStart(extents, row), sums.data() + plane * extents.channels);
  const std::vector<double> totals = AddParts(sums, extents.channels);
  std::transform(totals.begin(), totals.end(), dbias,
                 [](double total) { return static_cast<float>(total); });
}

void LookUpKernel(const float* table, std::span<const int16_t> counts, float* y) {
  const int64_t size = std::ssize(counts);
  const int16_t* count = counts.data();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < size; ++i)
    y[i] = table[static_cast<uint16_t>(count[i])];
}

void SgdKernel(const SgdStep& step, std::span<float> parameters, const float* gradients,
               float* velocity) {
  constexpr int64_t kBlock = 1 << 14;  // three blocks fit in a 1 MiB second-level cache
  const int64_t size = std::ssize(parameters);
  const float rate = static_cast<float>(step.learning_rate);
  const float momentum = static_cast<float>(step.momentum);
  const float decay = static_cast<float>(2 * step.l2);
#pragma omp parallel for schedule(static)
  for (int64_t start = 0; start < size; start += kBlock) {
    const size_t offset = static_cast<size_t>(start);
    const size_t count = static_cast<size_t>(std::min(kBlock, size - start));
    SgdRange(rate, momentum, decay, parameters.subspan(offset, count), gradients + start,
             velocity + start);
  }
}

}  // namespace assay
