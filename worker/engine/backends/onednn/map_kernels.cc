#include "worker/engine/backends/onednn/map_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/engine/backends/onednn/vector_clones.h"

namespace assay {
namespace {

// Elements that one thread takes at a time: fits in a second-level cache with its neighbours.
constexpr int64_t kBlock = 1 << 14;

// Rows that are summed up in float before their sum is added in double; at least so many, and no
// more than so many blocks, so that the partial sums stay small.
constexpr int64_t kBlockRows = 64;
constexpr int64_t kMaxBlocks = 256;

ASSAY_VECTOR_CLONES
void AddPart(int64_t count, const float* __restrict part, double* __restrict totals) {
  for (int64_t i = 0; i < count; ++i)
    totals[i] += double{part[i]};
}

// Adds up `sums` numbers per block of rows: add(first, last, sums of that block).
template <typename Add>
std::vector<double> SumBlocks(int64_t rows, int64_t sums, Add add) {
  const int64_t size = std::max(kBlockRows, (rows + kMaxBlocks - 1) / kMaxBlocks);
  const int64_t blocks = (rows + size - 1) / size;
  std::vector<float> partial(static_cast<size_t>(blocks * sums));
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block)
    add(block * size, std::min(rows, (block + 1) * size), partial.data() + block * sums);
  return AddParts(partial, sums);
}

ASSAY_VECTOR_CLONES
void AddRows(int64_t rows, int64_t channels, const float* __restrict x, float* __restrict sums) {
  for (int64_t row = 0; row < rows; ++row, x += channels)
    for (int64_t c = 0; c < channels; ++c)
      sums[c] += x[c];
}

ASSAY_VECTOR_CLONES
void AddSquares(int64_t rows, int64_t channels, const float* __restrict x,
                const float* __restrict mean, float* __restrict sums) {
  for (int64_t row = 0; row < rows; ++row, x += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float offset = x[c] - mean[c];
      sums[c] += offset * offset;
    }
  }
}

ASSAY_VECTOR_CLONES
void NormaliseRows(int64_t rows, int64_t channels, const ScaleShift& s, const float* __restrict x,
                   float* __restrict y) {
  const float* __restrict mean = s.mean;
  const float* __restrict slope = s.slope;
  const float* __restrict shift = s.shift;
  const float least = s.relu ? 0.0F : -3.402823466e+38F;
  for (int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float value = (x[c] - mean[c]) * slope[c] + shift[c];
      y[c] = value < least ? least : value;
    }
  }
}

// A function of its own, because loops over two pointers that may be equal get no vectors.
ASSAY_VECTOR_CLONES
void NormaliseRowsInPlace(int64_t rows, int64_t channels, const ScaleShift& s,
                          float* __restrict y) {
  const float* __restrict mean = s.mean;
  const float* __restrict slope = s.slope;
  const float* __restrict shift = s.shift;
  const float least = s.relu ? 0.0F : -3.402823466e+38F;
  for (int64_t row = 0; row < rows; ++row, y += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float value = (y[c] - mean[c]) * slope[c] + shift[c];
      y[c] = value < least ? least : value;
    }
  }
}

ASSAY_VECTOR_CLONES
void AddGradients(int64_t rows, int64_t channels, const float* __restrict mean,
                  const float* __restrict x, const float* __restrict dy, float* __restrict sums) {
  float* __restrict plain = sums + channels;
  for (int64_t row = 0; row < rows; ++row, x += channels, dy += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      sums[c] += dy[c] * (x[c] - mean[c]);
      plain[c] += dy[c];
    }
  }
}

ASSAY_VECTOR_CLONES
void MaskRange(int64_t size, const float* __restrict y, float* __restrict dy) {
  for (int64_t i = 0; i < size; ++i)
    dy[i] = y[i] > 0 ? dy[i] : 0.0F;
}

ASSAY_VECTOR_CLONES
void BackwardRows(int64_t rows, int64_t channels, const BackwardTerms& t, const float* x,
                  float* __restrict dy) {
  const float* __restrict mean = t.mean;
  const float* __restrict slope = t.slope;
  const float* __restrict offset = t.offset;
  const float* __restrict factor = t.factor;
  for (int64_t row = 0; row < rows; ++row, x += channels, dy += channels)
    for (int64_t c = 0; c < channels; ++c)
      dy[c] = slope[c] * (dy[c] - offset[c] - (x[c] - mean[c]) * factor[c]);
}

ASSAY_VECTOR_CLONES
void CombineRange(int64_t size, float a, const float* x, float b, float* y) {
  if (b == 0) {
    for (int64_t i = 0; i < size; ++i)
      y[i] = a * x[i];
  } else {
    for (int64_t i = 0; i < size; ++i)
      y[i] = a * x[i] + b * y[i];
  }
}

ASSAY_VECTOR_CLONES
void SumRange(int64_t size, const float* __restrict a, const float* __restrict b, bool relu,
              float* __restrict y) {
  if (relu) {
    for (int64_t i = 0; i < size; ++i) {
      const float sum = a[i] + b[i];
      y[i] = sum > 0 ? sum : 0.0F;
    }
  } else {
    for (int64_t i = 0; i < size; ++i)
      y[i] = a[i] + b[i];
  }
}

ASSAY_VECTOR_CLONES
void BiasRows(int64_t rows, int64_t channels, const float* __restrict bias, float slope,
              float* __restrict y) {
  for (int64_t row = 0; row < rows; ++row, y += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const float value = y[c] + bias[c];
      y[c] = value > 0 ? value : slope * value;
    }
  }
}

ASSAY_VECTOR_CLONES
void BiasBackwardRows(int64_t rows, int64_t channels, const float* __restrict y, float slope,
                      float* __restrict dy, float* __restrict sums) {
  for (int64_t row = 0; row < rows; ++row, y += channels, dy += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      dy[c] = y[c] > 0 ? dy[c] : slope * dy[c];
      sums[c] += dy[c];
    }
  }
}

ASSAY_VECTOR_CLONES
void ReluRange(int64_t size, float* y) {
  for (int64_t i = 0; i < size; ++i)
    y[i] = y[i] > 0 ? y[i] : 0.0F;
}

// Calls work(first, count) for blocks of a range, on all threads.
template <typename Work>
void ForEachBlock(int64_t size, int64_t block, Work work) {
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < size; first += block)
    work(first, std::min(block, size - first));
}

int64_t RowsOfBlock(const MapExtents& e) {
  return std::max(int64_t{1}, kBlock / e.channels);
}

}  // namespace

std::vector<double> AddParts(std::span<const float> parts, int64_t count) {
  std::vector<double> totals(static_cast<size_t>(count));
  for (int64_t start = 0; start < std::ssize(parts); start += count)
    AddPart(count, parts.data() + start, totals.data());
  return totals;
}

std::vector<double> RowSumsKernel(const MapExtents& e, const float* x) {
  return SumBlocks(e.rows, e.channels, [&](int64_t first, int64_t last, float* sums) {
    AddRows(last - first, e.channels, x + first * e.channels, sums);
  });
}

std::vector<double> SquaredOffsetsKernel(const MapExtents& e, const float* x, const float* mean) {
  return SumBlocks(e.rows, e.channels, [&](int64_t first, int64_t last, float* sums) {
    AddSquares(last - first, e.channels, x + first * e.channels, mean, sums);
  });
}

void NormaliseKernel(const MapExtents& e, const ScaleShift& s, const float* x, float* y) {
  ForEachBlock(e.rows, RowsOfBlock(e), [&](int64_t first, int64_t rows) {
    const int64_t start = first * e.channels;
    if (x == y)
      NormaliseRowsInPlace(rows, e.channels, s, y + start);
    else
      NormaliseRows(rows, e.channels, s, x + start, y + start);
  });
}

std::vector<double> NormaliseSumsKernel(const MapExtents& e, const float* mean, const float* x,
                                        const float* y, float* dy) {
  return SumBlocks(e.rows, 2 * e.channels, [&](int64_t first, int64_t last, float* sums) {
    const int64_t start = first * e.channels, rows = last - first;
    if (y != nullptr) MaskRange(rows * e.channels, y + start, dy + start);
    AddGradients(rows, e.channels, mean, x + start, dy + start, sums);
  });
}

void NormaliseBackwardKernel(const MapExtents& e, const BackwardTerms& t, const float* x,
                             float* dy) {
  ForEachBlock(e.rows, RowsOfBlock(e), [&](int64_t first, int64_t rows) {
    BackwardRows(rows, e.channels, t, x + first * e.channels, dy + first * e.channels);
  });
}

void CombineKernel(float a, const float* x, float b, std::span<float> y) {
  ForEachBlock(std::ssize(y), kBlock, [&](int64_t first, int64_t size) {
    CombineRange(size, a, x + first, b, y.data() + first);
  });
}

void SumKernel(const float* a, const float* b, bool relu, std::span<float> y) {
  ForEachBlock(std::ssize(y), kBlock, [&](int64_t first, int64_t size) {
    SumRange(size, a + first, b + first, relu, y.data() + first);
  });
}

void BiasKernel(const MapExtents& e, const float* bias, float slope, float* y) {
  ForEachBlock(e.rows, RowsOfBlock(e), [&](int64_t first, int64_t rows) {
    BiasRows(rows, e.channels, bias, slope, y + first * e.channels);
  });
}

std::vector<double> BiasBackwardKernel(const MapExtents& e, const float* y, float slope,
                                       float* dy) {
  return SumBlocks(e.rows, e.channels, [&](int64_t first, int64_t last, float* sums) {
    BiasBackwardRows(last - first, e.channels, y + first * e.channels, slope,
                     dy + first * e.channels, sums);
  });
}

void CopyKernel(const void* from, size_t bytes, void* to) {
  ForEachBlock(static_cast<int64_t>(bytes), kBlock * 16, [&](int64_t first, int64_t size) {
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first,
                static_cast<size_t>(size));
  });
}

void ReluKernel(std::span<float> y) {
  ForEachBlock(std::ssize(y), kBlock,
               [&](int64_t first, int64_t size) { ReluRange(size, y.data() + first); });
}

void ReluBackwardKernel(const float* y, std::span<float> dy) {
  ForEachBlock(std::ssize(dy), kBlock,
               [&](int64_t first, int64_t size) { MaskRange(size, y + first, dy.data() + first); });
}

void CopyRowsKernel(const RowCopy& copy, const float* from, float* to) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < copy.rows; ++row)
    std::memcpy(to + row * copy.to_stride, from + row * copy.from_stride,
                static_cast<size_t>(copy.size) * sizeof(float));
}

void SpreadKernel(const MapExtents& e, float factor, const float* from, float* to) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < e.rows; ++row)
    CombineRange(e.channels, factor, from, 0, to + row * e.channels);
}

double CrossEntropyKernel(const MapExtents& e, const float* logits, const uint8_t* labels,
                          const float* weights, float* gradient) {
  const float share = 1.0F / static_cast<float>(e.rows);
  const std::vector<double> total =
      SumBlocks(e.rows, 1, [&](int64_t first, int64_t last, float* sum) {
        double loss = 0;
        for (int64_t pixel = first; pixel < last; ++pixel) {
          const float* score = logits + pixel * e.channels;
          float* slope = gradient + pixel * e.channels;
          const float largest = *std::max_element(score, score + e.channels);
          float norm = 0;
          for (int64_t c = 0; c < e.channels; ++c) {
            slope[c] = std::exp(score[c] - largest);
            norm += slope[c];
          }
          const int64_t truth = labels[pixel];
          const float weight = weights[truth];
          loss += double{weight} * (std::log(double{norm}) + double{largest - score[truth]});
          for (int64_t c = 0; c < e.channels; ++c)
            slope[c] = weight * share * (slope[c] / norm - (c == truth ? 1.0F : 0.0F));
        }
        *sum = static_cast<float>(loss);
      });
  return total[0] / static_cast<double>(e.rows);
}

}  // namespace assay
