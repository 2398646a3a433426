// Staging where several nodes need the same files, as those over which a spatial group is spread:
// each reads its part of them from shared storage, and they send each other the rest (requirement
// S5; docs/adr/0203).

#ifndef WORKER_TRAINER_PEER_STAGING_H_
#define WORKER_TRAINER_PEER_STAGING_H_

#include <functional>

#include "absl/status/statusor.h"

#include "common/clock.h"
#include "common/dataset/manifest.h"
#include "common/dataset/parallel.h"
#include "worker/comm/collective.h"
#include "worker/data/staging.h"
#include "worker/trainer/stage_plan.h"

namespace assay {

// As data::StageFiles, and all ranks of the world call it. Peers whose jobs are not the same to the
// byte, because one of them has files already, or whose files are of unknown size, stage alone. A
// file that came from a peer is of the job's size and has its digest; DATA_LOSS if not. Errors of
// messages are those of Collective::Wait, with ExitCode::kCommLost; `deadline` says until when the
// next may take.
absl::StatusOr<data::Staged> StageWithPeers(const data::StagingJob& job, const Peers& peers,
                                            comm::Collective* comm,
                                            const std::function<MonoTime()>& deadline,
                                            const Clock* clock,
                                            dataset::ProgressCallback progress = nullptr);

// The same of what lies in archives: each peer unpacks those of its part of the plan.
// FAILED_PRECONDITION: the peers' indexes of the archives are not the same. Otherwise as
// StageFromArchives.
absl::StatusOr<data::Staged> StageArchivesWithPeers(const StagePlan& plan,
                                                    const dataset::Manifest& manifest,
                                                    const Peers& peers, comm::Collective* comm,
                                                    const std::function<MonoTime()>& deadline,
                                                    const Clock* clock,
                                                    dataset::ProgressCallback progress = nullptr);

}  // namespace assay

#endif  // WORKER_TRAINER_PEER_STAGING_H_
