// A view of numbers that something else owns (usually an Arena): address, shape, element type.
//
// Contiguous, row-major, channels last. Copying a Tensor copies the view. The memory belongs to the
// backend that allocated it: dereference it on the host only where the backend computes there.

#ifndef WORKER_ENGINE_TENSOR_H_
#define WORKER_ENGINE_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "common/log.h"
#include "worker/engine/bfloat16.h"
#include "worker/engine/shape.h"

namespace assay {

enum class DType { kFloat32, kFloat64, kInt16, kUint8, kBfloat16 };

constexpr size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kFloat64:
      return 8;
    case DType::kInt16:
    case DType::kBfloat16:
      return 2;
    case DType::kUint8:
      return 1;
  }
  return 0;
}

template <typename T>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::kFloat32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::kFloat64;
  } else if constexpr (std::is_same_v<T, int16_t>) {
    return DType::kInt16;
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return DType::kBfloat16;
  } else {
    static_assert(std::is_same_v<T, uint8_t>, "no DType for this type");
    return DType::kUint8;
  }
}

struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::kFloat32;

  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * SizeOf(dtype); }

  // The first element. `T` must be the tensor's type.
  template <typename T>
  T* As() const {
    CHECK(dtype == DTypeOf<T>() && data != nullptr) << "shape=" << shape.ToString();
    return static_cast<T*>(data);
  }
  // All elements in memory order. `T` must be the tensor's type.
  template <typename T>
  std::span<T> Span() const {
    return {As<T>(), static_cast<size_t>(elements())};
  }
  // The elements from `first` on, as many as `part` has.
  Tensor Part(int64_t first, const Shape& part) const {
    CHECK(first >= 0 && first + part.elements() <= elements())
        << "first=" << first << " part=" << part.ToString() << " of=" << shape.ToString();
    return {static_cast<std::byte*>(data) + static_cast<size_t>(first) * SizeOf(dtype), part,
            dtype};
  }
  // The same numbers under another shape with as many elements.
  Tensor Reshaped(const Shape& other) const {
    CHECK(other.elements() == elements())
        << "from=" << shape.ToString() << " to=" << other.ToString();
    return {data, other, dtype};
  }
};

}  // namespace assay

#endif  // WORKER_ENGINE_TENSOR_H_
