// Tensors that own their numbers, for tests on backends that compute on the host.

#ifndef TESTS_WORKER_ENGINE_HOST_TENSOR_H_
#define TESTS_WORKER_ENGINE_HOST_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/random.h"
#include "worker/engine/tensor.h"

namespace assay {

template <typename T>
struct HostTensor {
  explicit HostTensor(Shape of_shape)
      : shape(of_shape), values(static_cast<size_t>(of_shape.elements())) {}
  HostTensor(Shape of_shape, std::vector<T> of_values)
      : shape(of_shape), values(std::move(of_values)) {}

  // Uniform in [-1, 1), different for every `salt`.
  static HostTensor Random(Shape shape, uint32_t salt) {
    HostTensor tensor(shape);
    const Stream stream(7, Purpose::kTest, salt);
    for (size_t i = 0; i < tensor.values.size(); ++i)
      tensor.values[i] = static_cast<T>(2 * stream.UniformDouble(i) - 1);
    return tensor;
  }

  Tensor view() { return {values.data(), shape, DTypeOf<T>()}; }

  Shape shape;
  std::vector<T> values;
};

}  // namespace assay

#endif  // TESTS_WORKER_ENGINE_HOST_TENSOR_H_
