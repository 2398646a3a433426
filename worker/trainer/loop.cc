#include "worker/trainer/loop.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/dataset/layout.h"
#include "common/log.h"
#include "common/rules/ranks.h"
#include "common/status.h"
#include "worker/comm/ring.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/thread_pinning.h"
#include "worker/models/registry.h"
#include "worker/trainer/device_ranks.h"
#include "worker/trainer/engines.h"
#include "worker/trainer/failure.h"
#include "worker/trainer/peer_staging.h"
#include "worker/trainer/rank_connection.h"
#include "worker/trainer/stage_plan.h"

namespace assay {
namespace {

// Longer than any step: a rank that is silent for so long is gone or stuck.
constexpr absl::Duration kCollectiveTimeout = absl::Minutes(5);

std::unique_ptr<const Workload> WorkloadOf(const TrainerSpec& spec) {
  absl::StatusOr<std::unique_ptr<const Workload>> workload = MakeWorkload(spec);
  CHECK_OK(workload.status());  // a spec that was made has a workload
  return *std::move(workload);
}

}  // namespace

TrainingLoop::TrainingLoop(const TrainerSpec& spec, const Clock* clock,
                           const std::atomic<bool>* stop)
    : spec_(spec),
      workload_(WorkloadOf(spec)),
      clock_(clock),
      stop_(stop),
      progress_(spec.rank == 0 ? spec.run.progress_path() : "", clock),
      profile_(clock) {}

TrainingLoop::~TrainingLoop() = default;

absl::Duration TrainingLoop::CollectiveTimeout() const {
  const int64_t timeout_ms = spec_.run.collective_timeout_ms();
  return timeout_ms > 0 ? absl::Milliseconds(timeout_ms) : kCollectiveTimeout;
}

MonoTime TrainingLoop::Deadline() const {
  return clock_->Mono() + CollectiveTimeout();
}

absl::Status TrainingLoop::CheckStop() const {
  if (!stop_->load(std::memory_order_relaxed)) return log_->status();
  return WithExitCode(absl::CancelledError("asked to stop"), ExitCode::kTerminated);
}

absl::Status TrainingLoop::Run() {
  ASSIGN_OR_RETURN(log_, WithExitCode(RunLog::Open(spec_, clock_), ExitCode::kDisk));
  // The header is there already, from the process that was killed.
  log_->Mute(spec_.is_resumed && FileExists(CheckpointPath(spec_)));
  RETURN_IF_ERROR(Initialise());
  if (!spec_.run.is_staging_timed()) RETURN_IF_ERROR(Stage());
  RETURN_IF_ERROR(StartClock());
  const absl::Status status = RunEpochs();
  if (!status.ok()) {
    log_->RunStop("aborted");
    return status;
  }
  RETURN_IF_ERROR(WithExitCode(log_->status(), ExitCode::kDisk));
  RETURN_IF_ERROR(ReportProfile(/*is_final=*/true));
  LOG(INFO) << "run=" << spec_.run.run() << " rank=" << spec_.rank
            << " clock_drift=" << log_->ClockDrift();
  progress_.Report({.phase = "done"},
                   {{"clock_drift_us", JsonValue(absl::ToInt64Microseconds(log_->ClockDrift()))}});
  return WithExitCode(comm_->Close(Deadline()), ExitCode::kCommLost);
}

// Rank 0 chooses engines while it builds its model, the others then take the same.
absl::Status TrainingLoop::BuildWithEngines() {
  ASSIGN_OR_RETURN(EngineChoices engines, WithExitCode(StoredEngines(spec_), ExitCode::kBadSpec));
  RETURN_IF_ERROR(Connect());
  if (spec_.rank == 0) {
    RETURN_IF_ERROR(BuildModel(engines));
    engines = model_->engine_choices();
    if (!engines.device.empty())
      RETURN_IF_ERROR(WithExitCode(WriteEngines(EnginesPath(spec_), engines), ExitCode::kDisk));
  }
  ASSIGN_OR_RETURN(engines,
                   WithExitCode(ShareEngines(engines, comm_.get(), clock_->Mono() + kMeetTimeout),
                                ExitCode::kCommLost));
  return spec_.rank == 0 ? absl::OkStatus() : BuildModel(engines);
}

absl::Status TrainingLoop::BuildModel(const EngineChoices& stored_engines) {
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                   WithExitCode(MakeBackend(spec_.run.trainer().backend(),
                                            {.device = spec_.run.local_rank(),
                                             .is_call_by_call = spec_.diagnosis.is_call_by_call,
                                             .trace_path = spec_.diagnosis.trace_path,
                                             .fuses_blocks = spec_.diagnosis.fuses_blocks,
                                             .times_engines = !spec_.diagnosis.first_engines,
                                             .stored_engines = stored_engines}),
                                ExitCode::kBackend));
  if (backend->is_host_memory())
    LOG(INFO) << "rank=" << spec_.rank << " pinned_compute_threads=" << PinComputeThreads();
  if (spec_.grid.IsSplit()) spatial_ = std::make_unique<SpatialRanks>(spec_.grid, spec_.rank);
  ModelSpec model = {.name = spec_.run.benchmark(),
                     .options = {.seed = static_cast<uint64_t>(spec_.run.seed()),
                                 .rank = static_cast<uint32_t>(spec_.group()),
                                 .reduction = {.is_alone = spec_.world_size == 1,
                                               .bucket_bytes = spec_.gradient_bucket_bytes()},
                                 .checks_numbers = spec_.diagnosis.checks_numbers},
                     .eval_batch = spec_.eval_batch_size(),
                     .memory_limit_bytes = spec_.memory_limit_mib << 20,
                     .group = spatial_.get()};
  workload_->Describe(&model);
  absl::StatusOr<std::unique_ptr<Trainable>> made = MakeTrainable(model, std::move(backend));
  if (!made.ok() && spec_.memory_limit_mib > 0)
    made = Annotate(made.status(), rules::kMemoryLimitKey);
  ASSIGN_OR_RETURN(model_, WithExitCode(std::move(made), ExitCode::kOutOfMemory));
  if (spec_.memory_limit_mib > 0) LogRecomputation();
  model_->set_clock(clock_);
  profile_.set_work(model_->work());
  const GradientSkip& skip = spec_.extensions.gradient_skip;
  if (!skip.IsUsed()) return absl::OkStatus();
  return WithExitCode(
      Annotate(model_->model().CheckFreezeThrough(skip.layer), kGradientSkipLayerKey),
      ExitCode::kBadSpec);
}

void TrainingLoop::LogRecomputation() const {
  const Recomputation& chosen = model_->model().recomputation();
  LOG(INFO) << "memory_limit_mib=" << spec_.memory_limit_mib
            << " training_bytes=" << model_->model().training_bytes()
            << " recomputed_segments=" << chosen.segments
            << " recomputed_flops_share=" << chosen.flops_share;
}

absl::Status TrainingLoop::Initialise() {
  workload_->LogInit(log_.get());
  RETURN_IF_ERROR(ChoosesEngines(spec_.run.trainer().backend()) ? BuildWithEngines()
                                                                : BuildModel({}));
  RETURN_IF_ERROR(WithExitCode(OpenSplits(), ExitCode::kBadData));
  RETURN_IF_ERROR(ReserveCache());
  return MeetRanks();
}

absl::Status TrainingLoop::Connect() {
  if (comm_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(comm_, ConnectRanks(spec_, clock_));
  comm_ = profile_.Watch(std::move(comm_));
  return absl::OkStatus();
}

absl::Status TrainingLoop::MeetRanks() {
  RETURN_IF_ERROR(Connect());
  if (spatial_ != nullptr) spatial_->Connect(comm_.get(), [this] { return Deadline(); });
  if (workload_->normalisation_group() > 1) {
    group_ = std::make_unique<RankGroup>(comm_.get(), workload_->normalisation_group(),
                                         [this] { return Deadline(); });
    model_->set_group(group_.get());
  }
  RETURN_IF_ERROR(
      WithExitCode(comm::BroadcastFromZero(
                       comm_.get(), std::as_writable_bytes(model_->parameters()), Deadline()),
                   ExitCode::kCommLost));
  model_->ParametersChanged();
  // Here all ranks are at the same point.
  if (model_->is_host_memory()) profile_.ProbePeak();
  RETURN_IF_ERROR(MeetOnDevice());
  checkpoints_ = std::make_unique<Checkpoints>(spec_, model_.get(), train_.steps);
  if (spec_.is_resumed) {
    ASSIGN_OR_RETURN(resumed_at_, checkpoints_->Restore(comm_.get(), Deadline()));
    if (!resumed_at_.has_value()) LOG(INFO) << "no checkpoint, so the run begins anew";
  }
  RETURN_IF_ERROR(OpenSources());
  return CheckStop();
}

// Where the ranks' devices can speak to each other, they do so from now on.
absl::Status TrainingLoop::MeetOnDevice() {
  RankAverage* const average = model_->reducer().device();
  RETURN_IF_ERROR(JoinDeviceRanks(average, workload_->normalisation_group(), comm_.get(), clock_,
                                  CollectiveTimeout()));
  if (average == nullptr || !average->has_joined()) return absl::OkStatus();
  if (comm_->protection() == comm::Protection::kSealed)
    LOG(WARNING)
        << "GPUs speak to each other without seals: only a network that none but the ranks "
           "reach protects them";
  if (group_ != nullptr) group_->UseDevice(average);
  if (spatial_ != nullptr) spatial_->UseDevice(average);
  return absl::OkStatus();
}

absl::Status TrainingLoop::OpenSplits() {
  const DataPlan plan = workload_->data();
  ASSIGN_OR_RETURN(sharded_, OpenSharded(spec_));
  const ShardedDataset* const sharded = sharded_.has_value() ? &*sharded_ : nullptr;
  const dataset::Manifest* const manifest = sharded == nullptr ? nullptr : &sharded->manifest;
  ASSIGN_OR_RETURN(train_, OpenSplit(spec_, plan, dataset::Split::kTrain, manifest));
  ASSIGN_OR_RETURN(validation_, OpenSplit(spec_, plan, dataset::Split::kValidation, manifest));
  if (!spec_.run.dataset().is_staged()) return absl::OkStatus();
  ASSIGN_OR_RETURN(stage_, PlanStaging(spec_, train_, validation_, plan.shared_files, sharded));
  // The clock is not for what others have copied before.
  if (!spec_.run.is_staging_timed() && !spec_.run.node_cache().empty())
    cached_ = TakeCached(spec_.run.node_cache(), &stage_);
  return absl::OkStatus();
}

// Room on the device for samples that come by again. It fills after the clock has started.
absl::Status TrainingLoop::ReserveCache() {
  ASSIGN_OR_RETURN(const int64_t samples,
                   WithExitCode(DivideCache(spec_, workload_->data(), &train_, &validation_),
                                ExitCode::kBadSpec));
  if (samples == 0) return absl::OkStatus();
  const absl::Status status = Annotate(model_->ReserveCache(samples), rules::kDeviceCacheKey);
  if (!status.ok())
    return WithExitCode(
        status, absl::IsInvalidArgument(status) ? ExitCode::kBadSpec : ExitCode::kOutOfMemory);
  LOG(INFO) << "device_cache_samples=" << samples << " train=" << train_.slots << " of "
            << train_.distinct_samples() << " validation=" << validation_.slots << " of "
            << validation_.distinct_samples();
  return absl::OkStatus();
}

absl::Status TrainingLoop::OpenSources() {
  const DataPlan plan = workload_->data();
  for (DataSplit* const split : {&train_, &validation_}) {
    RETURN_IF_ERROR(
        WithExitCode(OpenSource(spec_, plan, resumed_at_.value_or(TrainingPosition()), split),
                     ExitCode::kBadData));
    for (const std::span<std::byte> memory : split->source->memory())
      split->pins.push_back(model_->Pin(memory));
  }
  return absl::OkStatus();
}

absl::Status TrainingLoop::StartClock() {
  // Nobody touches the data before rank 0 has logged run_start: the others wait for it here.
  RETURN_IF_ERROR(WithExitCode(comm::Barrier(comm_.get(), Deadline()), ExitCode::kCommLost));
  const RankAverage* const device = model_->reducer().device();
  LogProtection(*comm_, device != nullptr && device->has_joined(), log_.get());
  log_->InitStop();
  log_->RunStart();
  workload_->LogStart(log_.get());
  RETURN_IF_ERROR(WithExitCode(comm::Barrier(comm_.get(), Deadline()), ExitCode::kCommLost));
  if (spec_.run.is_staging_timed()) RETURN_IF_ERROR(Stage());
  workload_->LogSettings(log_.get());
  if (resumed_at_.has_value()) {
    log_->Mute(false);
    log_->Resumed(static_cast<int>(resumed_at_->epoch), resumed_at_->step);
  }
  RETURN_IF_ERROR(CheckStop());
  train_.source->Start();
  validation_.source->Start();
  return absl::OkStatus();
}

absl::Status TrainingLoop::Stage() {
  ASSIGN_OR_RETURN(const int64_t cached_bytes, CachedBytes());
  log_->StagingStart(cached_bytes);
  if (spec_.run.dataset().is_staged()) RETURN_IF_ERROR(CopyToNode());
  RETURN_IF_ERROR(WithExitCode(comm::Barrier(comm_.get(), Deadline()), ExitCode::kCommLost));
  log_->StagingStop();
  return CheckStop();
}

// Of all ranks; no other rank's counts but in rank 0's log.
absl::StatusOr<int64_t> TrainingLoop::CachedBytes() {
  if (!spec_.run.dataset().is_staged() || spec_.run.is_staging_timed()) return 0;
  auto bytes = static_cast<double>(cached_.bytes);
  RETURN_IF_ERROR(
      WithExitCode(comm::AllReduceSum(comm_.get(), std::span<double>(&bytes, 1), Deadline()),
                   ExitCode::kCommLost));
  return static_cast<int64_t>(bytes);
}

absl::Status TrainingLoop::CopyToNode() {
  RETURN_IF_ERROR(WithExitCode(CheckStagingSpace(stage_), ExitCode::kDisk));
  // No rank of a node writes before the others have looked.
  if (spec_.run.ranks_per_node() > 1)
    RETURN_IF_ERROR(WithExitCode(comm::Barrier(comm_.get(), Deadline()), ExitCode::kCommLost));
  const auto report = [this](const dataset::Progress& p) {
    progress_.Report({.phase = "staging", .done = p.files, .total = p.files_total},
                     {{"bytes", JsonValue(p.bytes)}});
  };
  const auto deadline = [this] { return Deadline(); };
  const Peers peers = PeersOf(spec_);
  ASSIGN_OR_RETURN(const data::Staged staged,
                   sharded_.has_value()
                       ? StageArchivesWithPeers(stage_, sharded_->manifest, peers, comm_.get(),
                                                deadline, clock_, report)
                       : StageWithPeers(stage_.job, peers, comm_.get(), deadline, clock_, report));
  sharded_.reset();
  profile_.Staged(staged);
  LOG(INFO) << "staged files=" << staged.files << " bytes=" << staged.bytes
            << " peer_bytes=" << staged.peer_bytes << " in=" << staged.elapsed
            << " file_p99=" << staged.file_p99 << " retries=" << staged.retries
            << " window=" << staged.window << " cached_files=" << cached_.files
            << " cached_bytes=" << cached_.bytes;
  return absl::OkStatus();
}

absl::Status TrainingLoop::RunEpochs() {
  const TrainingPosition start = resumed_at_.value_or(TrainingPosition());
  if (!resumed_at_.has_value()) RETURN_IF_ERROR(SaveIfDue(start));
  steps_done_ = start.epoch * train_.steps + start.step;
  auto epoch = static_cast<int>(start.epoch);
  bool is_target_reached = false;
  for (; epoch < spec_.run.epoch_count_max() && !is_target_reached; ++epoch) {
    const int64_t first_step = epoch == start.epoch ? start.step : 0;
    EpochResult result = {.epoch = epoch, .step = steps_done_};
    epochs_done_ = epoch + 1;
    if (first_step == 0) workload_->LogEpochStart(log_.get(), result);
    RETURN_IF_ERROR(TrainEpoch(first_step, &result));
    RETURN_IF_ERROR(CompareRanks(epoch));
    workload_->LogTrained(log_.get(), result);
    log_->EvalStart(epoch);
    RETURN_IF_ERROR(Evaluate(&result));
    // Every rank holds the same bits of the quality, so all leave the loop together.
    is_target_reached = result.is_reached = workload_->IsReached(result.quality);
    workload_->LogEpochEnd(log_.get(), result);
    ReportEpoch(result);
    // The last one comes after run_stop: it is not to be on the clock.
    if (!is_target_reached && epoch + 1 < spec_.run.epoch_count_max())
      RETURN_IF_ERROR(ReportProfile(/*is_final=*/false));
    if (!is_target_reached) RETURN_IF_ERROR(SaveIfDue({.epoch = epoch + 1}));
  }
  log_->RunStop(is_target_reached ? "success" : "aborted");
  if (spec_.checkpoint_interval_steps == 0) return absl::OkStatus();
  return checkpoints_->Save({.epoch = epoch}, comm_.get(), Deadline());  // the finished model
}

absl::Status TrainingLoop::SaveIfDue(const TrainingPosition& position) {
  if (!checkpoints_->IsDue(position)) return absl::OkStatus();
  return checkpoints_->Save(position, comm_.get(), Deadline());
}

void TrainingLoop::ReportEpoch(const EpochResult& result) {
  LOG(INFO) << "rank=" << spec_.rank << " epoch=" << result.epoch + 1
            << " loss=" << result.train_loss << " " << spec_.run.quality_key() << "="
            << result.quality;
  progress_.Report({.phase = "evaluation",
                    .epoch = result.epoch + 1,
                    .done = validation_.steps,
                    .total = validation_.steps},
                   {{spec_.run.quality_key(), JsonValue(result.quality)},
                    {"target", JsonValue(spec_.run.quality_target())}});
}

// Waits for the next batch of a split to be read.
absl::StatusOr<const data::Batch*> TrainingLoop::NextBatch(DataSplit* split) {
  const Profile::Span wait(&profile_, &ProfileCounts::input_wait_s);
  return WithExitCode(split->source->Next(), ExitCode::kBadData);
}

// Collective: rank 0 writes down what all ranks have done so far.
absl::Status TrainingLoop::ReportProfile(bool is_final) {
  ProfileCounts& counts = profile_.counts();
  counts.read_bytes = train_.source->stored_bytes() + validation_.source->stored_bytes();
  counts.input_copy_s = absl::ToDoubleSeconds(model_->input_copy_time());
  counts.device_averages = model_->reducer().counts();
  if (const RankAverage* const device = model_->reducer().device(); device != nullptr)
    counts.device_traffic = device->traffic();
  counts.cached_samples = model_->cached_samples();
  ASSIGN_OR_RETURN(const std::vector<ProfileCounts> ranks,
                   WithExitCode(profile_.Gather(Deadline()), ExitCode::kCommLost));
  progress_.ReportProfile(ProfileRecord({.epoch = epochs_done_,
                                         .is_final = is_final,
                                         .backend = spec_.run.trainer().backend(),
                                         .ranks_per_sample = spec_.grid.size(),
                                         .ranks_per_node = spec_.run.ranks_per_node()},
                                        ranks));
  return absl::OkStatus();
}

absl::Status TrainingLoop::TrainEpoch(int64_t first_step, EpochResult* result) {
  const Profile::Span span(&profile_, &ProfileCounts::train_s);
  const GradientSkip& skip = spec_.extensions.gradient_skip;
  if (skip.IsOn(result->epoch)) {
    RETURN_IF_ERROR(WithExitCode(model_->FreezeThrough(skip.layer), ExitCode::kBadSpec));
    profile_.set_work(model_->work());
  }
  for (int64_t step = first_step; step < train_.steps; ++step) {
    RETURN_IF_ERROR(CheckStop());
    RETURN_IF_ERROR(Step(step, result));
    // After the last step comes the evaluation, which looks back at that step's batch.
    if (step + 1 < train_.steps)
      RETURN_IF_ERROR(SaveIfDue({.epoch = result->epoch, .step = step + 1}));
    progress_.Report(
        {.phase = "training", .epoch = result->epoch + 1, .done = step + 1, .total = train_.steps},
        {{"loss", JsonValue(result->train_loss)}});
  }
  result->step = steps_done_;
  return workload_->judges_training() ? JudgeTraining(result) : absl::OkStatus();
}

absl::Status TrainingLoop::Step(int64_t step, EpochResult* result) {
  ASSIGN_OR_RETURN(const data::Batch* const batch, NextBatch(&train_));
  const std::optional<Batch> next = PeekAt(&train_, train_.batch);
  const StepPosition position = {.epoch = static_cast<uint32_t>(result->epoch),
                                 .step = static_cast<uint64_t>(step)};
  const int64_t optimizer_step = steps_done_++ / model_->accumulation() + 1;
  result->learning_rate = workload_->LearningRate(result->epoch, optimizer_step);
  ASSIGN_OR_RETURN(const float loss,
                   WithExitCode(model_->TrainStep(
                                    ViewOf(*batch, batch->size), position, result->learning_rate,
                                    [this](std::span<float> gradients) {
                                      return WithExitCode(
                                          comm::AllReduceMean(comm_.get(), gradients, Deadline()),
                                          ExitCode::kCommLost);
                                    },
                                    next.has_value() ? &*next : nullptr),
                                ExitCode::kNumeric));
  result->train_loss = double{loss};
  profile_.Trained(batch->size);
  if (workload_->judges_training() && step + 1 == train_.steps) {
    ASSIGN_OR_RETURN(result->train_quality,
                     WithExitCode(model_->TrainQuality(), ExitCode::kNumeric));
  }
  return absl::OkStatus();
}

// All ranks have taken the same steps from the same weights, so they hold the same bits, or
// something is wrong that no quality would show: broken memory, other programs, gradients from
// elsewhere.
absl::Status TrainingLoop::CompareRanks(int epoch) {
  if (spec_.world_size == 1) return absl::OkStatus();
  const std::string when = absl::StrCat(" after epoch ", epoch + spec_.first_epoch_number);
  model_->Synchronize();
  const auto agree = [&](absl::string_view what, std::span<const float> values) {
    const absl::Status status =
        comm::AgreeSameBytes(comm_.get(), what, std::as_bytes(values), Deadline());
    return WithExitCode(
        status, absl::IsFailedPrecondition(status) ? ExitCode::kDiverged : ExitCode::kCommLost);
  };
  RETURN_IF_ERROR(agree("parameters" + when, model_->parameters()));
  return agree("the optimizer's state" + when, model_->optimizer_state());
}

// The last batch over all ranks, and the running statistics that the evaluation uses: each rank has
// kept its own so far, and the reference averages them.
absl::Status TrainingLoop::JudgeTraining(EpochResult* result) {
  double values[2] = {result->train_quality, result->train_loss};
  RETURN_IF_ERROR(
      WithExitCode(comm::AllReduceMean(comm_.get(), std::span<double>(values), Deadline()),
                   ExitCode::kCommLost));
  result->train_quality = values[0];
  result->train_loss = values[1];
  if (model_->buffers().empty()) return absl::OkStatus();
  RETURN_IF_ERROR(WithExitCode(comm::AllReduceMean(comm_.get(), model_->buffers(), Deadline()),
                               ExitCode::kCommLost));
  model_->BuffersChanged();
  return absl::OkStatus();
}

absl::Status TrainingLoop::Evaluate(EpochResult* result) {
  const Profile::Span span(&profile_, &ProfileCounts::eval_s);
  EvalSums sums;
  for (int64_t step = 0; step < validation_.steps; ++step) {
    RETURN_IF_ERROR(CheckStop());
    ASSIGN_OR_RETURN(const data::Batch* const batch, NextBatch(&validation_));
    const int64_t samples = validation_.SamplesIn(step);
    const std::optional<Batch> next =
        PeekAt(&validation_, validation_.SamplesIn((step + 1) % validation_.steps));
    ASSIGN_OR_RETURN(const EvalSums part,
                     WithExitCode(model_->EvalBatch(ViewOf(*batch, samples),
                                                    next.has_value() ? &*next : nullptr),
                                  ExitCode::kNumeric));
    sums += part;
    profile_.Evaluated(samples);
    // A lost neighbour shows only here: this pass has no collective operation of its own.
    RETURN_IF_ERROR(WithExitCode(comm_->failure(), ExitCode::kCommLost));
    progress_.Report({.phase = "evaluation",
                      .epoch = result->epoch + 1,
                      .done = step,
                      .total = validation_.steps});
  }
  double totals[2] = {sums.quality, sums.loss};
  RETURN_IF_ERROR(WithExitCode(
      comm::AllReduceSum(comm_.get(), std::span<double>(totals), Deadline()), ExitCode::kCommLost));
  // Ranks that share samples have each counted all of them.
  const double samples = static_cast<double>(spec_.run.dataset().eval_sample_count()) *
                         static_cast<double>(spec_.grid.size());
  result->quality = totals[0] / (samples * static_cast<double>(model_->terms_per_sample()));
  result->loss = totals[1] / samples;
  return absl::OkStatus();
}

}  // namespace assay
