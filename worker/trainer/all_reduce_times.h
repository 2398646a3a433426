// How long sums over ranks take, by the size of the vector, in the hosts' memory or the GPUs':
// `assay bench allreduce`.

#ifndef WORKER_TRAINER_ALL_REDUCE_TIMES_H_
#define WORKER_TRAINER_ALL_REDUCE_TIMES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/fabric.pb.h"

#include "common/clock.h"
#include "worker/engine/backend.h"

namespace assay {

struct AllReduceTime {
  int64_t bytes = 0;
  double median_us = 0;
};

// Meets the other ranks of `spec` and sums float32 vectors of these sizes (whole multiples of 4)
// with them, as training does: each 7 to 500 times, some 128 MiB in all. Blocks until all are done;
// the spec's time limit is for all of it. Errors as OpenUcx and AllReduceSum.
absl::StatusOr<std::vector<AllReduceTime>> MeasureAllReduces(const v1::FabricSpec& spec,
                                                             std::span<const int64_t> sizes,
                                                             const Clock* clock);

// The same on devices: means in the memory of `backend`, which has a RankAverage that nobody has
// joined. It joins those of the other ranks, as training does; the collective of the hosts carries
// its id and lets all begin at once. A time ends when the device is done.
// Errors as MeasureAllReduces, of RankAverage and of Backend::Allocate, the latter with their exit
// codes (failure.h); UNAVAILABLE: the library of averages is not installed. FAILED_PRECONDITION: a
// rank alone. As with RankAverage, a device that fails in an average ends the process.
absl::StatusOr<std::vector<AllReduceTime>> MeasureDeviceAverages(const v1::FabricSpec& spec,
                                                                 std::span<const int64_t> sizes,
                                                                 Backend* backend,
                                                                 const Clock* clock);

}  // namespace assay

#endif  // WORKER_TRAINER_ALL_REDUCE_TIMES_H_
