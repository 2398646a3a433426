// What reductions are made of, whatever carries the terms. Files that include this are compiled for
// speed (CMakeLists.txt).

#ifndef WORKER_COMM_REDUCE_H_
#define WORKER_COMM_REDUCE_H_

#include <cstddef>
#include <span>

namespace assay::comm {

enum class Reduce { kSum, kMean };

// Up to this many bytes a vector goes whole to every peer, in one round, and is added in the order
// of the ranks. A first choice, not the result of a search: docs/benchmarks/allreduce.md has what
// it gives. Of longer ones each rank adds a part: part s in the order s, s + 1, ... of the ranks.
inline constexpr size_t kDirectBytesMax = 8 * 1024;

template <typename T>
void AddTo(std::span<T> sum, std::span<const T> terms) {
  T* const out = sum.data();
  const T* const in = terms.data();
  for (size_t i = 0; i < sum.size(); ++i)
    out[i] += in[i];
}

template <typename T>
void DivideBy(std::span<T> values, T divisor) {
  for (T& value : values)
    value /= divisor;
}

// The n-th of `count` parts of [0, size), which differ by one element at most.
struct Part {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};
inline Part PartOf(size_t size, size_t n, size_t count) {
  return Part{.begin = size * n / count, .end = size * (n + 1) / count};
}

}  // namespace assay::comm

#endif  // WORKER_COMM_REDUCE_H_
