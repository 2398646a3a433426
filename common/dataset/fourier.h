// What the synthesizers share of FFTW: its memory, and the lock that its planner needs.

#ifndef COMMON_DATASET_FOURIER_H_
#define COMMON_DATASET_FOURIER_H_

#include <fftw3.h>

#include <cstddef>
#include <memory>

#include "common/mutex.h"

namespace assay::dataset {

// FFTW allows only execution, not planning, from several threads at once; one lock for the process.
Mutex& FftwPlannerMutex();

template <typename T>
struct FftwFree {
  void operator()(T* pointer) const { fftw_free(pointer); }
};
template <typename T>
using FftwArray = std::unique_ptr<T[], FftwFree<T>>;

// `size` elements, aligned for FFTW's vector instructions, not initialised.
template <typename T>
FftwArray<T> MakeFftwArray(size_t size) {
  return FftwArray<T>(static_cast<T*>(fftw_malloc(size * sizeof(T))));
}

}  // namespace assay::dataset

#endif  // COMMON_DATASET_FOURIER_H_
