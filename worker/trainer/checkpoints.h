// When a run's state is saved, and how a killed run goes on from there.
//
// The state is small: parameters and the optimizer's state, equal on all ranks, what layers keep
// besides (running statistics, of each rank), and the position. Everything else is a function of
// the run spec and the position: random numbers are addressed by epoch and step (common/random.h),
// the order of samples by the epoch (worker/data/sampler.h), the learning rate by the epoch. So
// rank 0 writes one file and, on resuming, gives it to the others.

#ifndef WORKER_TRAINER_CHECKPOINTS_H_
#define WORKER_TRAINER_CHECKPOINTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/engine/checkpoint.h"
#include "worker/engine/trainable.h"
#include "worker/trainer/spec.h"

namespace assay {

// A digest of whatever in the run spec decides the bits of the result: everything but addresses,
// paths, limits and how often to save.
std::string IdentityOfRun(const TrainerSpec& spec);

// The file: beside the log. Only rank 0's node has it.
std::string CheckpointPath(const TrainerSpec& spec);

// Not thread-safe. Errors carry exit codes.
class Checkpoints {
 public:
  // `spec` and `model` must outlive it.
  Checkpoints(const TrainerSpec& spec, Trainable* model, int64_t steps_per_epoch);

  // Collective: takes over the saved state on all ranks. None if there is no checkpoint on rank 0:
  // then nothing has changed. FAILED_PRECONDITION, DATA_LOSS: as ReadCheckpoint, or the run has
  // reached its target; the other ranks get FAILED_PRECONDITION too.
  absl::StatusOr<std::optional<TrainingPosition>> Restore(comm::Collective* comm,
                                                          MonoTime deadline);

  // Whether the state before `position` is to be saved. Not between batches whose gradients are
  // accumulated.
  bool IsDue(const TrainingPosition& position) const;

  // Collective: rank 0 saves and blocks until it is on disk.
  absl::Status Save(const TrainingPosition& position, comm::Collective* comm, MonoTime deadline);

 private:
  std::vector<CheckpointSection> Sections();
  int64_t StepsBefore(const TrainingPosition& position) const;
  absl::Status GatherBuffers(comm::Collective* comm, MonoTime deadline);
  void TakeOver(const TrainingPosition& position);
  absl::StatusOr<TrainingPosition> Read(std::span<const CheckpointSection> sections) const;

  const TrainerSpec& spec_;
  Trainable* const model_;
  const int64_t steps_per_epoch_;
  std::vector<float> buffers_;  // of all ranks, one after the other
};

}  // namespace assay

#endif  // WORKER_TRAINER_CHECKPOINTS_H_
