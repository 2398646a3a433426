// What one benchmark does differently from another, between the run spec and the engine: its
// settings, which model, which data, which learning rates, what counts as reached, and which keys
// its reference logs when.
//
// A benchmark is one class, in the one file that reads, checks and logs its settings; one row in
// the table of workload.cc; and one model in worker/models/registry.cc.

#ifndef WORKER_TRAINER_WORKLOAD_H_
#define WORKER_TRAINER_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/dataset/layout.h"
#include "worker/data/sample_format.h"
#include "worker/data/sampler.h"
#include "worker/models/registry.h"
#include "worker/trainer/hyperparameters.h"
#include "worker/trainer/run_log.h"
#include "worker/trainer/spec.h"

namespace assay {

// How the samples are found and read.
struct DataPlan {
  data::SampleFormat format;
  std::string suffix = std::string(dataset::kSampleSuffix);
  data::Remainder train_remainder = data::Remainder::kRefuse;
  data::Remainder eval_remainder = data::Remainder::kRefuse;
  std::vector<std::string> shared_files;  // relative to the dataset; staged once for each node
};

// What is known of an epoch when it is logged; the same on all ranks.
struct EpochResult {
  int epoch = 0;             // from 0
  int64_t step = 0;          // batches of this rank so far
  double learning_rate = 0;  // of the last optimizer step
  double train_quality = 0;  // of the last batch, mean over the ranks
  double train_loss = 0;     // of the last batch, mean over the ranks
  double quality = 0;        // over the whole validation split
  double loss = 0;           // over the whole validation split
  bool is_reached = false;
};

// Immutable; the spec that it was made from must outlive it.
class Workload {
 public:
  virtual ~Workload() = default;

  // Fills in the benchmark's part of `model`, and the options that it decides.
  virtual void Describe(ModelSpec* model) const = 0;
  virtual DataPlan data() const = 0;
  // Of 0-based `epoch` and 1-based optimizer step.
  virtual double LearningRate(int epoch, int64_t optimizer_step) const = 0;
  virtual bool IsReached(double quality) const = 0;
  // Whether the reference judges and logs the last training batch of each epoch.
  virtual bool judges_training() const { return false; }
  // Consecutive ranks that normalise batches together; divides the world.
  virtual int normalisation_group() const { return 1; }

  // Up to, but without, init_stop.
  virtual void LogInit(RunLog* log) const = 0;
  // Right after run_start.
  virtual void LogStart(RunLog* log) const = 0;
  // When staging is over.
  virtual void LogSettings(RunLog* log) const = 0;
  virtual void LogEpochStart(RunLog* log, const EpochResult& result) const = 0;
  // Between training and evaluation, before eval_start.
  virtual void LogTrained(RunLog*, const EpochResult&) const {}
  // From after the evaluation to the end of the epoch.
  virtual void LogEpochEnd(RunLog* log, const EpochResult& result) const = 0;
};

// The workload of the spec's benchmark, which reads and checks its own settings here.
// INVALID_ARGUMENT names the field, what it holds and what is allowed; or that this trainer has no
// such benchmark, and those it has.
absl::StatusOr<std::unique_ptr<const Workload>> MakeWorkload(const TrainerSpec& spec);

// Whether the run is of MLPerf's closed division, which fixes the model.
bool IsClosedMlperf(const v1::RunSpec& run);

}  // namespace assay

#endif  // WORKER_TRAINER_WORKLOAD_H_
