// All-reduce through memory that the ranks share (worker/comm/shared_area.h).

#ifndef WORKER_COMM_SHARED_REDUCTION_H_
#define WORKER_COMM_SHARED_REDUCTION_H_

#include <span>

#include "absl/status/status.h"

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/comm/reduce.h"
#include "worker/comm/shared_area.h"

namespace assay::comm {

// Tries which stores into `area` are faster between these ranks, and has them used from then on:
// ordinary ones where cores share a cache, others past the caches where they do not. Takes some
// milliseconds. All ranks call it, and come to the same. Errors as Collective::Await.
absl::Status ChooseStores(Collective* comm, SharedArea* area, const Clock& clock,
                          MonoTime deadline);

// Replaces each element by its sum (or mean) over all ranks, with the bits that messages would
// give: those of AllReduceSum and AllReduceMean (ring.h). `area` is `comm`'s. Errors as
// Collective::Await; DATA_LOSS also if a rank reduces a vector of another size.
absl::Status ReduceShared(Collective* comm, SharedArea* area, std::span<float> values,
                          Reduce reduce, MonoTime deadline);
absl::Status ReduceShared(Collective* comm, SharedArea* area, std::span<double> values,
                          Reduce reduce, MonoTime deadline);

}  // namespace assay::comm

#endif  // WORKER_COMM_SHARED_REDUCTION_H_
