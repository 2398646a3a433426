// Lets the GPUs of a run's ranks average gradients among themselves.

#ifndef WORKER_TRAINER_DEVICE_RANKS_H_
#define WORKER_TRAINER_DEVICE_RANKS_H_

#include "absl/status/status.h"

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/engine/rank_average.h"

namespace assay {

// All ranks of `comm` join `average` with an id that rank 0 makes; where rank 0 cannot, because the
// library is not installed, nobody joins, the log says so, and gradients go through the host. Every
// rank calls it. Does nothing if `average` is null or there is one rank.
// Errors of the collective (kCommLost) and of RankAverage::Join (kBackend), with their exit codes.
absl::Status JoinDeviceRanks(RankAverage* average, comm::Collective* comm, MonoTime deadline);

}  // namespace assay

#endif  // WORKER_TRAINER_DEVICE_RANKS_H_
