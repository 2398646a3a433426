// What a rank copies to its node before it trains, and what the copies are compared with.

#ifndef WORKER_TRAINER_STAGE_PLAN_H_
#define WORKER_TRAINER_STAGE_PLAN_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/clock.h"
#include "common/dataset/manifest.h"
#include "common/dataset/parallel.h"
#include "common/dataset/shards.h"
#include "worker/data/staging.h"
#include "worker/trainer/data_split.h"
#include "worker/trainer/spec.h"

namespace assay {

// A dataset that lies in archives.
struct ShardedDataset {
  dataset::Manifest manifest;
  std::vector<dataset::Shard> shards;
};

// What the run stages from archives; nullopt: the dataset's files lie as they are. Reads its
// manifest and its index, and no archive. FAILED_PRECONDITION: there are archives, but the run
// stages nothing. Otherwise as PlanStaging and dataset::LoadShardIndex.
absl::StatusOr<std::optional<ShardedDataset>> OpenSharded(const TrainerSpec& spec);

// Ranks of one group on different nodes, which stage the same files: one of each node.
struct Peers {
  std::vector<int> ranks;  // ascending; one: nobody else needs this rank's files
  size_t own = 0;          // the place of this rank in it
};

// None but this rank where staging is off the clock: sending reads the copies, and there their
// first read is what the node witnesses.
Peers PeersOf(const TrainerSpec& spec);

struct StagePlan {
  data::StagingJob job;  // of this rank: what it writes
  // Where the dataset lies in archives: names of those that this rank reads, what of the job each
  // of its peers takes out of its own, and what the other ranks of the node write.
  std::vector<std::string> archives;
  std::vector<std::vector<data::FileToStage>> parts;
  std::vector<data::FileToStage> of_others;
};

// The files of this rank: its part of what its group stages on this node, of both splits, and, for
// the first rank of a node, `shared_files`; of archives (`sharded`, null: there are none) the
// node's files in those archives that are for this rank and its peers to read, each of which one
// rank reads of the node, or of the nodes whose ranks are peers. Sizes are those of the dataset's
// manifest, and so are the digests where staging is off the clock: on it computing them would be
// part of the score. A dataset without a manifest has neither. Reads the manifest and no sample.
// DATA_LOSS: the manifest is damaged, is not the one that was registered, or does not list a file;
// the index names no archive that has one.
absl::StatusOr<StagePlan> PlanStaging(const TrainerSpec& spec, const DataSplit& train,
                                      const DataSplit& validation,
                                      const std::vector<std::string>& shared_files,
                                      const ShardedDataset* sharded = nullptr);

// As data::TakeCached, of the whole plan; returns what of it was this rank's.
data::CachedFiles TakeCached(const std::string& cache_dir, StagePlan* plan);

// As data::CheckStagingSpace.
absl::Status CheckStagingSpace(const StagePlan& plan);

// As data::StageArchives, with ExitCode::kBadData or kDisk.
absl::StatusOr<data::Staged> StageFromArchives(const std::vector<std::string>& archives,
                                               const data::StagingJob& job,
                                               const dataset::Manifest& manifest,
                                               const Clock* clock,
                                               dataset::ProgressCallback progress = nullptr);

}  // namespace assay

#endif  // WORKER_TRAINER_STAGE_PLAN_H_
