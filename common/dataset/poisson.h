// Poisson random numbers from a counter-based stream.

#ifndef COMMON_DATASET_POISSON_H_
#define COMMON_DATASET_POISSON_H_

#include <cstdint>

#include "common/random.h"

namespace assay::dataset {

// A Poisson number with this mean (0 to 1e6), a pure function of its arguments. Uses the 64-bit
// values of `stream` at index, index + stride, index + 2 * stride, ...; so one stream serves
// `stride` independent draws.
// Small means by inversion of the distribution; from 10 by transformed rejection with squeeze
// (PTRS: Hörmann 1993, Insurance: Mathematics and Economics 12, 39).
int32_t Poisson(double mean, const Stream& stream, uint64_t index, uint64_t stride);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_POISSON_H_
