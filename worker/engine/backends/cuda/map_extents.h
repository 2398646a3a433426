// Maps as matrices: rows are positions, columns channels.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_MAP_EXTENTS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_MAP_EXTENTS_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "common/log.h"
#include "worker/engine/backends/cuda/map_kernels.h"
#include "worker/engine/maps.h"
#include "worker/engine/tensor.h"

namespace assay::cuda {

struct MapExtents {
  int64_t rows, columns;
};

inline MapExtents ExtentsOf(const Tensor& map) {
  const int64_t columns = map.shape[map.shape.rank() - 1];
  return {map.elements() / columns, columns};
}

inline Tensor AsMatrix(const Tensor& map) {
  const MapExtents e = ExtentsOf(map);
  return map.Reshaped({e.rows, e.columns});
}

// For kernels; `map` has as many channels.
inline ChannelTerms TermsOf(const Normalisation& n, const Tensor& map) {
  const int64_t channels = ExtentsOf(map).columns;
  CHECK(n.mean.elements() == channels && n.variance.elements() == channels &&
        n.scale.elements() == channels && n.shift.elements() == channels)
      << "map=" << map.shape.ToString();
  return {.mean = n.mean.As<float>(),
          .variance = n.variance.As<float>(),
          .scale = n.scale.As<float>(),
          .shift = n.shift.As<float>(),
          .epsilon = static_cast<float>(n.epsilon),
          .relu = n.relu};
}

// Whether kernels may take `width` elements at once of tensors whose rows have `columns`.
inline bool IsVectorisable(int64_t columns, int width, std::initializer_list<const void*> tensors) {
  constexpr uintptr_t kBytes = 16;
  return columns % width == 0 && std::ranges::all_of(tensors, [](const void* data) {
           return reinterpret_cast<uintptr_t>(data) % kBytes == 0;
         });
}

// Calls visit(std::integral_constant<int, width>), where width is `kMost` if that may be, else 1.
template <int kMost, typename Visit>
void WithWidth(int64_t columns, std::initializer_list<const void*> tensors, const Visit& visit) {
  if (IsVectorisable(columns, kMost, tensors)) {
    visit(std::integral_constant<int, kMost>());
  } else {
    visit(std::integral_constant<int, 1>());
  }
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_MAP_EXTENTS_H_
