// One rank of one run: from the run spec to run_stop.
//
// Order of things, and why: the model is built and the ranks meet before the clock starts
// (initialisation is untimed, at most 30 minutes); rank 0 logs run_start before any rank opens a
// sample; staging comes after run_start where the round times it, before it where it does not; each
// epoch is trained, evaluated over the whole validation set, and compared with the quality target.

#ifndef WORKER_TRAINER_LOOP_H_
#define WORKER_TRAINER_LOOP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/data/batch_source.h"
#include "worker/data/staging.h"
#include "worker/engine/trainable.h"
#include "worker/trainer/checkpoints.h"
#include "worker/trainer/data_split.h"
#include "worker/trainer/profile.h"
#include "worker/trainer/progress.h"
#include "worker/trainer/rank_group.h"
#include "worker/trainer/run_log.h"
#include "worker/trainer/spatial_ranks.h"
#include "worker/trainer/spec.h"
#include "worker/trainer/stage_plan.h"
#include "worker/trainer/workload.h"

namespace assay {

// Not thread-safe. Errors carry an exit code (worker/trainer/failure.h).
class TrainingLoop {
 public:
  // `stop`: set by a signal handler; the run then ends at the next step with kTerminated.
  TrainingLoop(const TrainerSpec& spec, const Clock* clock, const std::atomic<bool>* stop);
  ~TrainingLoop();

  // Runs to the target, to the last epoch, or to the first failure. Blocks.
  absl::Status Run();

 private:
  absl::Status Initialise();
  absl::Status BuildWithEngines();
  absl::Status BuildModel(const EngineChoices& stored_engines);
  void LogRecomputation() const;
  absl::Status OpenSplits();
  absl::Status ReserveCache();
  absl::Status OpenSources();
  absl::Status StartClock();
  absl::Status Stage();
  absl::StatusOr<int64_t> CachedBytes();
  absl::Status CopyToNode();
  absl::Status RunEpochs();
  absl::Status TrainEpoch(int64_t first_step, EpochResult* result);
  absl::Status SaveIfDue(const TrainingPosition& position);
  absl::Status JudgeTraining(EpochResult* result);
  absl::Status CompareRanks(int epoch);
  absl::Status Evaluate(EpochResult* result);
  absl::Status Step(int64_t step, EpochResult* result);
  absl::StatusOr<const data::Batch*> NextBatch(DataSplit* split);
  void ReportEpoch(const EpochResult& result);
  absl::Status ReportProfile(bool is_final);
  absl::Status Connect();
  absl::Status MeetRanks();
  absl::Status MeetOnDevice();
  absl::Status CheckStop() const;
  absl::Duration CollectiveTimeout() const;
  MonoTime Deadline() const;

  const TrainerSpec& spec_;
  const std::unique_ptr<const Workload> workload_;
  const Clock* const clock_;
  const std::atomic<bool>* const stop_;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<comm::Collective> comm_;
  std::unique_ptr<SpatialRanks> spatial_;  // null unless ranks share samples
  std::unique_ptr<RankGroup> group_;       // if several ranks normalise together
  std::unique_ptr<Trainable> model_;
  std::unique_ptr<Checkpoints> checkpoints_;
  std::optional<TrainingPosition> resumed_at_;  // none: the run began with this process
  Progress progress_;
  Profile profile_;
  DataSplit train_;
  DataSplit validation_;
  std::optional<ShardedDataset> sharded_;  // if the dataset lies in archives
  StagePlan stage_;                        // if it is staged
  data::CachedFiles cached_;               // that need not be
  int epochs_done_ = 0;                    // the one at hand included
  int64_t steps_done_ = 0;                 // batches trained on, of this rank
};

}  // namespace assay

#endif  // WORKER_TRAINER_LOOP_H_
