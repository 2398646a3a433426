// Loops over maps that oneDNN lacks or cannot split where ranks must meet: batch normalisation in
// pieces, joins of branches, the loss.
//
// A map is `rows` times `channels` numbers, channels fastest. Results do not depend on the number
// of threads.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_MAP_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_MAP_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay {

struct MapExtents {
  int64_t rows = 0;
  int64_t channels = 0;
};

// Adds up parts of `count` numbers each, one after the other.
std::vector<double> AddParts(std::span<const float> parts, int64_t count);

// Sum of each channel over the rows.
std::vector<double> RowSumsKernel(const MapExtents& e, const float* x);

// Sum of (x - mean)^2 of each channel.
std::vector<double> SquaredOffsetsKernel(const MapExtents& e, const float* x, const float* mean);

// y = (x - mean) * slope + shift, then max(0, y) if `relu`.
struct ScaleShift {
  const float* mean;
  const float* slope;
  const float* shift;
  bool relu;
};
void NormaliseKernel(const MapExtents& e, const ScaleShift& s, const float* x, float* y);

// Sets dy to 0 where y is not positive (unless y is null), and returns the sums of dy * (x - mean),
// then those of dy: 2 * channels numbers.
std::vector<double> NormaliseSumsKernel(const MapExtents& e, const float* mean, const float* x,
                                        const float* y, float* dy);

// dy <- slope * (dy - offset - (x - mean) * factor)
struct BackwardTerms {
  const float* mean;
  const float* slope;
  const float* offset;
  const float* factor;
};
void NormaliseBackwardKernel(const MapExtents& e, const BackwardTerms& t, const float* x,
                             float* dy);

// y <- a x + b y; with b = 0, y is not read.
void CombineKernel(float a, const float* x, float b, std::span<float> y);
// y = a + b, then max(0, y) if `relu`; y is none of the others.
void SumKernel(const float* a, const float* b, bool relu, std::span<float> y);
// y <- f(y + bias), channel by channel; f(x) = x > 0 ? x : slope * x.
void BiasKernel(const MapExtents& e, const float* bias, float slope, float* y);
// dy <- dy * f', recovered from f's result y; returns the sums of dy.
std::vector<double> BiasBackwardKernel(const MapExtents& e, const float* y, float slope, float* dy);
void CopyKernel(const void* from, size_t bytes, void* to);
// y <- max(0, y)
void ReluKernel(std::span<float> y);
// dy <- y > 0 ? dy : 0
void ReluBackwardKernel(const float* y, std::span<float> dy);

// Rows of `size` numbers, the distance from one row to the next on either side.
struct RowCopy {
  int64_t rows, size;
  int64_t from_stride, to_stride;
};
void CopyRowsKernel(const RowCopy& copy, const float* from, float* to);

// to[row] = factor * from, for `e.rows` rows.
void SpreadKernel(const MapExtents& e, float factor, const float* from, float* to);

// As MapOperations::SoftmaxCrossEntropy over `pixels` of `classes`; returns the loss.
double CrossEntropyKernel(const MapExtents& e, const float* logits, const uint8_t* labels,
                          const float* weights, float* gradient);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_MAP_KERNELS_H_
