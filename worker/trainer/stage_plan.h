// What a rank copies to its node before it trains, and what the copies are compared with.

#ifndef WORKER_TRAINER_STAGE_PLAN_H_
#define WORKER_TRAINER_STAGE_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/staging.h"
#include "worker/trainer/data_split.h"
#include "worker/trainer/spec.h"

namespace assay {

// The files of this rank: its part of what its group stages on this node, of both splits, and, for
// the first rank of a node, `shared_files`. Sizes are those of the dataset's manifest, and so are
// the digests where staging is off the clock: on it computing them would be part of the score. A
// dataset without a manifest has neither. Reads the manifest and no sample. DATA_LOSS: the manifest
// is damaged, is not the one that was registered, or does not list a file.
absl::StatusOr<data::StagingJob> PlanStaging(const TrainerSpec& spec, const DataSplit& train,
                                             const DataSplit& validation,
                                             const std::vector<std::string>& shared_files);

}  // namespace assay

#endif  // WORKER_TRAINER_STAGE_PLAN_H_
