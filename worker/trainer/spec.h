// What one rank is asked to do: the run spec, checked and turned into the terms of the engine.

#ifndef WORKER_TRAINER_SPEC_H_
#define WORKER_TRAINER_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/run_spec.pb.h"

#include "common/dataset/tfrecord.h"
#include "worker/engine/gradient_buckets.h"
#include "worker/engine/spatial.h"
#include "worker/trainer/extensions.h"

namespace assay {

// Hyperparameter: steps from one checkpoint to the next.
inline constexpr char kCheckpointKey[] = "checkpoint_interval_steps";

// What a person who looks for a fault asks of the trainer, beside the run.
struct Diagnosis {
  bool is_call_by_call = false;  // as in BackendOptions
  std::string trace_path;
  bool fuses_blocks = false;
  bool checks_numbers = false;  // as in TrainableOptions
  bool first_engines = false;   // a GPU's library's own opinion instead of timed and stored engines
};

// What every benchmark has; the settings of one are its workload's (workload.h). Immutable once
// made.
struct TrainerSpec {
  v1::RunSpec run;

  int rank = 0;        // node_rank * ranks_per_node + local_rank
  int world_size = 1;  // node_count * ranks_per_node
  // How the ranks of a group divide each sample (hyperparameter "spatial_grid": parts along D and
  // along H). Group g has the ranks g * grid.size() and following; all of them have its samples.
  SpatialGrid grid;
  int64_t global_batch_size = 0;
  int local_batch_size = 0;  // of a group

  int group() const { return rank / grid.size(); }
  int group_count() const { return world_size / grid.size(); }
  // Ranks of one group that share a node.
  int group_ranks_per_node() const;

  int64_t checkpoint_interval_steps = 0;  // 0: none are written
  bool is_resumed = false;                // go on from the last checkpoint if there is one
  Diagnosis diagnosis;
  // Of GPUs that average gradients among themselves; 0: all at once. None: the engine's default.
  std::optional<int64_t> gradient_bucket_mib;
  int64_t gradient_bucket_bytes() const {
    return gradient_bucket_mib.value_or(kGradientBucketMib) << 20;
  }

  // What training may take of the backend's memory (ModelSpec::memory_limit_bytes); 0: as much as
  // it takes.
  int64_t memory_limit_mib = 0;

  Extensions extensions;
  // Samples that a group evaluates at once.
  int eval_batch_size() const {
    return extensions.eval_batch == 0 ? local_batch_size : extensions.eval_batch;
  }

  dataset::Compression compression = dataset::Compression::kNone;
  // Where samples are read from: the dataset itself, or this node's staging area.
  std::string data_directory;
  // Round v0.7 numbers epochs from 0, all later ones from 1.
  int first_epoch_number = 1;
};

// Hyperparameters are read under their mlperf-log keys; those that are not given take the
// reference's defaults. INVALID_ARGUMENT names the field, what it holds and what is allowed; also
// where it is one that only the benchmark's workload reads.
absl::StatusOr<TrainerSpec> MakeTrainerSpec(const v1::RunSpec& run);

// Makes `spec` one of a process that goes on where a killed one left off. FAILED_PRECONDITION where
// the rules forbid it: in the closed division of an MLPerf round a run may not pause.
absl::Status Resume(TrainerSpec* spec);

// Reads a text proto. INVALID_ARGUMENT as above, with the path and, for syntax, line:column.
absl::StatusOr<TrainerSpec> LoadTrainerSpec(const std::string& path);

}  // namespace assay

#endif  // WORKER_TRAINER_SPEC_H_
