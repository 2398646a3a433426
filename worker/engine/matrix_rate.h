// How fast this process multiplies matrices through oneDNN: what a node's check before a set asks.

#ifndef WORKER_ENGINE_MATRIX_RATE_H_
#define WORKER_ENGINE_MATRIX_RATE_H_

#include "absl/time/time.h"

#include "common/clock.h"

namespace assay {

struct MatrixRate {
  double flops_per_s = 0;  // fp32; a multiply-add is two
  int products = 0;        // of square matrices of kMatrixRateSize
};
inline constexpr int kMatrixRateSize = 2048;

// Multiplies on the threads that oneDNN uses until `duration` has passed, at least once after a
// product that does not count. The mean of all: a node that is stopped now and then is slow. Takes
// 48 MiB.
MatrixRate MeasureMatrixRate(absl::Duration duration, const Clock* clock);

}  // namespace assay

#endif  // WORKER_ENGINE_MATRIX_RATE_H_
