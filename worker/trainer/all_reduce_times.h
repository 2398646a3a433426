// How long sums over ranks take, by the size of the vector: `assay bench allreduce`.

#ifndef WORKER_TRAINER_ALL_REDUCE_TIMES_H_
#define WORKER_TRAINER_ALL_REDUCE_TIMES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/fabric.pb.h"

#include "common/clock.h"

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

}  // namespace assay

#endif  // WORKER_TRAINER_ALL_REDUCE_TIMES_H_
