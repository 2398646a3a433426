// Sums over many elements, as chains of Folds, each with far fewer results than the one before:
// the order in which threads run does not change the result.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_SUM_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_SUM_KERNELS_H_

#include <cstdint>
#include <type_traits>

#include "worker/engine/backends/cuda/vec.h"
#include "worker/engine/bfloat16.h"

namespace assay::cuda {

// One term of the sums over the rows of a (rows, columns): element `index`.
struct Term {
  int64_t index, row, column;
};

// Two sums from one reading.
struct Pair {
  double first, second;

  ASSAY_DEVICE Pair& operator+=(const Pair& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
  friend bool operator==(const Pair&, const Pair&) = default;
};

// What an earlier Fold left.
template <typename Sums>
struct Partials {
  using Sum = Sums;
  const Sum* x;

  ASSAY_DEVICE Sum operator()(const Term& t) const { return x[t.index]; }
  friend bool operator==(const Partials&, const Partials&) = default;
};

// Sums the rows of a (rows, columns) into `results` rows: result r takes the rows r, r + results,
// r + 2 * results and so on. `Source` gives the number, or the Pair, of a Term. The last of a chain
// has one result and hands it to `Finish`.
//
// On the GPU a later Fold sums each result with a whole block of threads, each of which takes its
// Part; what the first leaves for it is in their cache.
template <typename Source, typename Finish>
struct Fold {
  using Sum = typename Source::Sum;
  static constexpr bool kByBlocks = std::is_same_v<Source, Partials<Sum>>;

  Source source;
  Sum* sums;  // (results, columns), or null in the last of a chain
  Finish finish;
  int64_t rows, results, columns;
  int64_t count;  // results * columns

  // Of element i, every lanes-th term.
  ASSAY_DEVICE Sum Part(int64_t i, int64_t lane, int64_t lanes) const {
    const int64_t column = i % columns;
    Sum sum = {};
#ifdef __CUDA_ARCH__
#pragma unroll 4
#endif
    for (int64_t row = i / columns + lane * results; row < rows; row += lanes * results)
      sum += source(Term{row * columns + column, row, column});
    return sum;
  }
  ASSAY_DEVICE void Store(int64_t i, const Sum& sum) const {
    if (sums == nullptr) {
      finish(i, sum);
    } else {
      sums[i] = sum;
    }
  }
  ASSAY_DEVICE void operator()(int64_t i) const {
    Store(i, Part(i, 0, 1));
  }
  friend bool operator==(const Fold&, const Fold&) = default;
};

// The first Fold of two sums over a map: each thread takes kWidth columns side by side, which
// `Source` reads at once. A Fold of Partials goes on with what it leaves.
template <typename Source, int kWidth>
struct VecFold {
  Source source;
  Pair* sums;  // (results, columns)
  int64_t rows, results, columns;
  int64_t count;  // results * columns / kWidth

  ASSAY_DEVICE void operator()(int64_t i) const {
    const int64_t vectors = columns / kWidth, result = i / vectors, first = i % vectors * kWidth;
    const auto terms = source.template At<kWidth>(first);
    Pair pairs[kWidth] = {};
#ifdef __CUDA_ARCH__
#pragma unroll 4
#endif
    for (int64_t row = result; row < rows; row += results)
      source.Add(row * columns + first, terms, pairs);
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      sums[result * columns + first + j] = pairs[j];
  }
  friend bool operator==(const VecFold&, const VecFold&) = default;
};

// --- What becomes of sums, by columns ---

// y = factor * sum
template <typename To>
struct Scaled {
  To* y;
  double factor;

  ASSAY_DEVICE void operator()(int64_t column, double sum) const {
    y[column] = To(static_cast<float>(factor * sum));
  }
  friend bool operator==(const Scaled&, const Scaled&) = default;
};

// Each of the two by itself.
struct Both {
  float* first;
  float* second;

  ASSAY_DEVICE void operator()(int64_t column, const Pair& sum) const {
    first[column] = static_cast<float>(sum.first);
    second[column] = static_cast<float>(sum.second);
  }
  friend bool operator==(const Both&, const Both&) = default;
};

// --- Sources ---

template <typename T>
struct Values {
  using Sum = double;
  const T* x;

  ASSAY_DEVICE double operator()(const Term& t) const { return double{float(x[t.index])}; }
  friend bool operator==(const Values&, const Values&) = default;
};

struct Squares {
  using Sum = double;
  const float* x;

  ASSAY_DEVICE double operator()(const Term& t) const {
    return double{x[t.index]} * double{x[t.index]};
  }
  friend bool operator==(const Squares&, const Squares&) = default;
};

struct SquaredDifferences {
  using Sum = double;
  const float* x;
  const float* y;

  ASSAY_DEVICE double operator()(const Term& t) const {
    const double difference = double{x[t.index]} - double{y[t.index]};
    return difference * difference;
  }
  friend bool operator==(const SquaredDifferences&, const SquaredDifferences&) = default;
};

// What reaches a bias through pooling.
template <typename T>
struct PooledGradients {
  using Sum = double;
  const T* dy;
  const uint8_t* code;
  float slope;

  ASSAY_DEVICE double operator()(const Term& t) const {
    const auto gradient = float(dy[t.index]);
    return double{(code[t.index] & 8U) != 0 ? gradient : slope * gradient};
  }
  friend bool operator==(const PooledGradients&, const PooledGradients&) = default;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_SUM_KERNELS_H_
