// Connects the ranks of a run.

#ifndef WORKER_TRAINER_RANK_CONNECTION_H_
#define WORKER_TRAINER_RANK_CONNECTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/trainer/run_log.h"
#include "worker/trainer/spec.h"

namespace assay {

// Ranks start when their agents do; a slow node may take minutes (rules: initialisation may take
// 30 minutes).
inline constexpr absl::Duration kMeetTimeout = absl::Minutes(10);

// This rank's communicator, once all ranks are there; blocks up to kMeetTimeout. A run of one rank
// has one too. Errors of comm::OpenCollective, with exit code kCommLost.
absl::StatusOr<std::unique_ptr<comm::Collective>> ConnectRanks(const TrainerSpec& spec,
                                                               const Clock* clock);

// How messages of `comm` are protected, into the run's log; not of one process, where there is
// nothing to protect. `devices_joined`: whether GPUs speak to each other too.
void LogProtection(const comm::Collective& comm, bool devices_joined, RunLog* log);

}  // namespace assay

#endif  // WORKER_TRAINER_RANK_CONNECTION_H_
