// Sums over many elements, as chains of Folds, each with far fewer results than the one before:
// the order in which threads run does not change the result.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_SUM_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_SUM_KERNELS_H_

#include <cstdint>

#include "worker/engine/bfloat16.h"

namespace assay::cuda {

// One term of the sums over the rows of a (rows, columns): element `index`.
struct Term {
  int64_t index, row, column;
};

// Sums the rows of a (rows, columns) into `results` rows: result r takes the rows r, r + results,
// r + 2 * results and so on. `Source` gives the number of a Term. The last of a chain has one
// result and rounds it, times `factor`, into y.
template <typename Source>
struct Fold {
  Source source;
  double* sums;  // (results, columns), or null where there is y
  float* y;      // (columns), or null
  double factor;
  int64_t rows, results, columns;
  int64_t count;  // results * columns

  ASSAY_DEVICE void operator()(int64_t i) const {
    const int64_t column = i % columns;
    double sum = 0;
    for (int64_t row = i / columns; row < rows; row += results)
      sum += source(Term{row * columns + column, row, column});
    if (y != nullptr) {
      y[i] = static_cast<float>(factor * sum);
    } else {
      sums[i] = sum;
    }
  }
  friend bool operator==(const Fold&, const Fold&) = default;
};

// --- Sources ---

struct Values {
  const float* x;

  ASSAY_DEVICE double operator()(const Term& t) const { return double{x[t.index]}; }
  friend bool operator==(const Values&, const Values&) = default;
};

struct Squares {
  const float* x;

  ASSAY_DEVICE double operator()(const Term& t) const {
    return double{x[t.index]} * double{x[t.index]};
  }
  friend bool operator==(const Squares&, const Squares&) = default;
};

struct SquaredDifferences {
  const float* x;
  const float* y;

  ASSAY_DEVICE double operator()(const Term& t) const {
    const double difference = double{x[t.index]} - double{y[t.index]};
    return difference * difference;
  }
  friend bool operator==(const SquaredDifferences&, const SquaredDifferences&) = default;
};

// What reaches a bias through pooling.
struct PooledGradients {
  const float* dy;
  const uint8_t* code;
  float slope;

  ASSAY_DEVICE double operator()(const Term& t) const {
    const float gradient = dy[t.index];
    return double{(code[t.index] & 8U) != 0 ? gradient : slope * gradient};
  }
  friend bool operator==(const PooledGradients&, const PooledGradients&) = default;
};

// The results of another Fold.
struct Partials {
  const double* x;

  ASSAY_DEVICE double operator()(const Term& t) const { return x[t.index]; }
  friend bool operator==(const Partials&, const Partials&) = default;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_SUM_KERNELS_H_
