// Lets the GPUs of a run's ranks average and exchange among themselves.

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
// `group_size`: consecutive ranks that take means among themselves too (RankScope::kGroup).
// `timeout`: for the id to arrive, for all to join, and later for a rank whose device is silent.
// Errors of the collective (kCommLost) and of RankAverage::Join (kBackend), with their exit codes.
absl::Status JoinDeviceRanks(RankAverage* average, int group_size, comm::Collective* comm,
                             const Clock* clock, absl::Duration timeout);

}  // namespace assay

#endif  // WORKER_TRAINER_DEVICE_RANKS_H_
