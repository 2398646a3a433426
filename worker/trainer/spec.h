// What one rank is asked to do: the run spec, checked and turned into the terms of the engine.

#ifndef WORKER_TRAINER_SPEC_H_
#define WORKER_TRAINER_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/run_spec.pb.h"

#include "common/dataset/tfrecord.h"
#include "common/json_value.h"
#include "worker/engine/gradient_buckets.h"
#include "worker/engine/lr_schedule.h"
#include "worker/engine/optimizer.h"
#include "worker/engine/spatial.h"
#include "worker/engine/step_schedule.h"
#include "worker/models/cosmoflow.h"
#include "worker/models/deepcam.h"
#include "worker/trainer/extensions.h"

namespace assay {

// Hyperparameter: steps from one checkpoint to the next.
inline constexpr char kCheckpointKey[] = "checkpoint_interval_steps";

// What DeepCAM asks for beyond what every benchmark has.
struct DeepcamSettings {
  DeepcamSpec model;
  OptimizerOptions optimizer;
  StepSchedule schedule;
  int batchnorm_group = 1;  // consecutive ranks that normalise together
  int accumulation = 1;     // batches for each optimizer step
};

// Immutable once made.
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

  // Of CosmoFlow:
  LrSchedule schedule;
  JsonValue logged_decay_boundaries;  // as logged: a sorted list
  double logged_decay_factor = 1;     // as logged: the largest of the factors
  double dropout = 0;
  double weight_decay = 0;  // Keras' l2: adds weight_decay * sum(w^2) to the loss
  std::string optimizer_name = "SGD";
  int64_t checkpoint_interval_steps = 0;  // 0: none are written
  bool is_resumed = false;                // go on from the last checkpoint if there is one
  // Of GPUs that average gradients among themselves; 0: all at once. None: the engine's default.
  std::optional<int64_t> gradient_bucket_mib;
  int64_t gradient_bucket_bytes() const {
    return gradient_bucket_mib.value_or(kGradientBucketMib) << 20;
  }

  CosmoflowSpec model;

  DeepcamSettings deepcam;  // if the benchmark is that

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
// reference's defaults (mlcommons/hpc, cosmoflow/configs/cosmo.yaml, deepcam/train.py). A single
// opt_learning_rate_decay_factor f at n boundaries means f, f^2, ..., f^n of the peak.
// INVALID_ARGUMENT names the field, what it holds and what is allowed.
absl::StatusOr<TrainerSpec> MakeTrainerSpec(const v1::RunSpec& run);

// Makes `spec` one of a process that goes on where a killed one left off. FAILED_PRECONDITION where
// the rules forbid it: in the closed division of an MLPerf round a run may not pause.
absl::Status Resume(TrainerSpec* spec);

// Reads a text proto. INVALID_ARGUMENT as above, with the path and, for syntax, line:column.
absl::StatusOr<TrainerSpec> LoadTrainerSpec(const std::string& path);

}  // namespace assay

#endif  // WORKER_TRAINER_SPEC_H_
