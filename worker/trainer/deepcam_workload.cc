#include "worker/trainer/deepcam_workload.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/dataset/climate_file.h"
#include "common/file.h"
#include "common/status.h"
#include "worker/engine/optimizer.h"
#include "worker/engine/step_schedule.h"

namespace assay {
namespace {

using Kind = OptimizerOptions::Kind;

struct DeepcamSettings {
  DeepcamSpec model;
  OptimizerOptions optimizer;
  StepSchedule schedule;
  int batchnorm_group = 1;  // consecutive ranks that normalise together
  int accumulation = 1;     // batches for each optimizer step
};

absl::Status ReadAdam(const Hyperparameters& parameters, OptimizerOptions* optimizer) {
  ASSIGN_OR_RETURN(const std::string name, parameters.Text("opt_name", "LAMB"));
  const absl::StatusOr<Kind> kind = ParseOptimizer(name);
  if (!kind.ok() || *kind == Kind::kSgd)
    return InvalidField("opt_name", absl::StrCat("want Adam, AdamW or LAMB, found ", name));
  optimizer->kind = *kind;
  ASSIGN_OR_RETURN(optimizer->weight_decay, parameters.Number("opt_weight_decay", 1e-6));
  ASSIGN_OR_RETURN(optimizer->epsilon, parameters.Number("opt_eps", optimizer->epsilon));
  ASSIGN_OR_RETURN(optimizer->max_grad_norm, parameters.Number("opt_max_grad_norm", 1));
  ASSIGN_OR_RETURN(const std::vector<double> betas, parameters.Numbers("opt_betas"));
  if (betas.empty()) return absl::OkStatus();
  const auto is_rate = [](double beta) { return beta >= 0 && beta < 1; };
  if (betas.size() != 2 || !std::all_of(betas.begin(), betas.end(), is_rate))
    return InvalidField("opt_betas", "want two numbers in [0, 1)");
  optimizer->beta1 = betas[0];
  optimizer->beta2 = betas[1];
  return absl::OkStatus();
}

absl::Status ReadStepSchedule(const Hyperparameters& parameters, StepSchedule* schedule) {
  ASSIGN_OR_RETURN(const std::string type, parameters.Text("scheduler_type", "multistep"));
  const absl::StatusOr<StepSchedule::Kind> kind = ParseStepSchedule(type);
  if (!kind.ok()) return InvalidField("scheduler_type", kind.status().message());
  schedule->kind = *kind;
  ASSIGN_OR_RETURN(schedule->base, parameters.Number("opt_lr", 1e-3));
  ASSIGN_OR_RETURN(schedule->warmup_steps, parameters.Integer("scheduler_lr_warmup_steps", 0));
  ASSIGN_OR_RETURN(schedule->warmup_factor, parameters.Number("scheduler_lr_warmup_factor", 1));
  ASSIGN_OR_RETURN(const std::vector<double> milestones,
                   parameters.Numbers("scheduler_milestones"));
  for (const double milestone : milestones)
    schedule->milestones.push_back(std::llround(milestone));
  ASSIGN_OR_RETURN(schedule->decay, parameters.Number("scheduler_decay_rate", 0.1));
  ASSIGN_OR_RETURN(schedule->period, parameters.Integer("scheduler_t_max", 1));
  ASSIGN_OR_RETURN(schedule->least, parameters.Number("scheduler_eta_min", 0));
  ASSIGN_OR_RETURN(schedule->power, parameters.Number("scheduler_power", 1));
  return Validate(*schedule);
}

absl::StatusOr<DeepcamSpec> ReadModel(const Hyperparameters& parameters, const TrainerSpec& spec) {
  const DeepcamSpec reference;
  DeepcamSpec model;
  ASSIGN_OR_RETURN(model.height, parameters.Integer("map_height", reference.height));
  ASSIGN_OR_RETURN(model.width, parameters.Integer("map_width", reference.width));
  ASSIGN_OR_RETURN(model.base_filters,
                   parameters.Integer("base_filter_count", reference.base_filters));
  ASSIGN_OR_RETURN(model.middle_blocks,
                   parameters.Integer("middle_block_count", reference.middle_blocks));
  model.batch = spec.local_batch_size;
  if (IsClosedMlperf(spec.run) &&
      (model.height != reference.height || model.width != reference.width ||
       model.base_filters != reference.base_filters ||
       model.middle_blocks != reference.middle_blocks)) {
    return InvalidField(
        "map_height, map_width, base_filter_count, middle_block_count",
        absl::StrCat("the closed division has ", reference.height, ", ", reference.width, ", ",
                     reference.base_filters, ", ", reference.middle_blocks));
  }
  RETURN_IF_ERROR(Validate(model));
  return model;
}

absl::Status ReadGroups(const Hyperparameters& parameters, const TrainerSpec& spec,
                        DeepcamSettings* settings) {
  constexpr int64_t kMaxAccumulation = 1 << 16;
  ASSIGN_OR_RETURN(const int64_t group, parameters.Integer("batchnorm_group_size", 1));
  if (group < 1 || spec.world_size % group != 0)
    return InvalidField(
        "batchnorm_group_size",
        absl::StrCat("want a divisor of the ", spec.world_size, " ranks, found ", group));
  ASSIGN_OR_RETURN(const int64_t accumulation,
                   parameters.Integer("gradient_accumulation_frequency", 1));
  if (accumulation < 1 || accumulation > kMaxAccumulation)
    return InvalidField("gradient_accumulation_frequency",
                        absl::StrCat("want 1..", kMaxAccumulation, ", found ", accumulation));
  settings->batchnorm_group = static_cast<int>(group);
  settings->accumulation = static_cast<int>(accumulation);
  return absl::OkStatus();
}

absl::StatusOr<DeepcamSettings> ReadSettings(const Hyperparameters& parameters,
                                             const TrainerSpec& spec) {
  if (spec.extensions.augmentation != data::Augmentation::kNone)
    return InvalidField(kAugmentationKey, "deepcam's maps are not turned; leave it out");
  DeepcamSettings settings;
  RETURN_IF_ERROR(ReadAdam(parameters, &settings.optimizer));
  RETURN_IF_ERROR(ReadStepSchedule(parameters, &settings.schedule));
  RETURN_IF_ERROR(ReadGroups(parameters, spec, &settings));
  ASSIGN_OR_RETURN(settings.model, ReadModel(parameters, spec));
  return settings;
}

template <typename Number>
JsonValue ListOf(const std::vector<Number>& numbers) {
  JsonList list;
  for (const Number number : numbers)
    list.emplace_back(number);
  return JsonValue(list);
}

class DeepcamWorkload : public Workload {
 public:
  DeepcamWorkload(const TrainerSpec& spec, DeepcamSettings settings)
      : spec_(spec), settings_(std::move(settings)) {}

  void Describe(ModelSpec* model) const override {
    model->deepcam = settings_.model;
    model->options.optimizer = settings_.optimizer;
    model->options.accumulation = settings_.accumulation;
  }

  DataPlan data() const override {
    const dataset::ClimateExtents extents = {static_cast<int>(settings_.model.height),
                                             static_cast<int>(settings_.model.width)};
    const std::string statistics(dataset::kClimateStatisticsName);
    return {.format = data::DeepcamFormat(extents, JoinPath(spec_.data_directory, statistics)),
            .suffix = std::string(dataset::kClimateSuffix),
            .train_remainder = data::Remainder::kDrop,
            .eval_remainder = data::Remainder::kUneven,
            .shared_files = {statistics}};
  }

  double LearningRate(int, int64_t optimizer_step) const override {
    return LearningRateAtStep(settings_.schedule, optimizer_step);
  }
  bool IsReached(double quality) const override { return quality >= spec_.run.quality_target(); }
  bool judges_training() const override { return true; }
  int normalisation_group() const override { return settings_.batchnorm_group; }

  void LogInit(RunLog* log) const override {
    log->Submission();
    log->InitStart();
    log->Scale();
    log->Event("global_batch_size", JsonValue(spec_.global_batch_size));
    log->Event("batchnorm_group_size", settings_.batchnorm_group);
    log->Event("gradient_accumulation_frequency", settings_.accumulation);
    log->Event("checkpoint");
    LogOptimizer(log);
    LogSchedule(log);
    LogModel(log);
    log->ExtensionsOfRun();
    log->Event("train_samples", JsonValue(spec_.run.dataset().train_sample_count()));
    log->Event("eval_samples", JsonValue(spec_.run.dataset().eval_sample_count()));
  }
  void LogStart(RunLog*) const override {}
  void LogSettings(RunLog*) const override {}

  void LogEpochStart(RunLog* log, const EpochResult& result) const override {
    log->EpochStart(result.epoch, StepNumber(result));
  }

  void LogTrained(RunLog* log, const EpochResult& result) const override {
    log->Event("learning_rate", result.learning_rate, At(*log, result));
    log->Event("train_accuracy", result.train_quality, At(*log, result));
    log->Event("train_loss", result.train_loss, At(*log, result));
  }

  void LogEpochEnd(RunLog* log, const EpochResult& result) const override {
    log->Event("eval_accuracy", result.quality, At(*log, result));
    log->Event("eval_loss", result.loss, At(*log, result));
    if (result.is_reached)
      log->Event("target_accuracy_reached", spec_.run.quality_target(), At(*log, result));
    log->EvalStop(result.epoch);
    log->EpochStop(result.epoch, StepNumber(result));
  }

 private:
  static JsonObject StepNumber(const EpochResult& result) {
    JsonObject where;
    where.emplace_back("step_num", result.step);
    return where;
  }

  static JsonObject At(const RunLog& log, const EpochResult& result) {
    JsonObject where = log.EpochNumber(result.epoch);
    where.emplace_back("step_num", result.step);
    return where;
  }

  // The keys of the optimizer's parameter group, in its order.
  void LogOptimizer(RunLog* log) const {
    const OptimizerOptions& optimizer = settings_.optimizer;
    const bool is_lamb = optimizer.kind == Kind::kLamb;
    log->Event("opt_name", JsonValue(OptimizerName(optimizer.kind)));
    log->Event("opt_lr", settings_.schedule.base);
    if (is_lamb) log->Event("opt_bias_correction", JsonValue(true));
    log->Event("opt_betas", ListOf<double>({optimizer.beta1, optimizer.beta2}));
    log->Event("opt_eps", optimizer.epsilon);
    log->Event("opt_weight_decay", optimizer.weight_decay);
    if (!is_lamb) return;
    log->Event("opt_grad_averaging", JsonValue(true));
    log->Event("opt_max_grad_norm", optimizer.max_grad_norm);
  }

  void LogSchedule(RunLog* log) const {
    const StepSchedule& schedule = settings_.schedule;
    log->Event("scheduler_type", JsonValue(StepScheduleName(schedule.kind)));
    if (schedule.kind == StepSchedule::Kind::kMultistep) {
      log->Event("scheduler_milestones", ListOf(schedule.milestones));
      log->Event("scheduler_decay_rate", schedule.decay);
    } else {
      log->Event("scheduler_t_max", JsonValue(schedule.period));
      log->Event("scheduler_eta_min", schedule.least);
      if (schedule.kind == StepSchedule::Kind::kPolynomial)
        log->Event("scheduler_power", schedule.power);
    }
    log->Event("scheduler_lr_warmup_steps", JsonValue(schedule.warmup_steps));
    log->Event("scheduler_lr_warmup_factor", schedule.warmup_factor);
  }

  // MLPerf fixes the model, so its logs do not describe it; a facility's own round may vary it.
  void LogModel(RunLog* log) const {
    if (absl::StartsWith(spec_.run.round(), "hpc-")) return;
    log->Event("map_height", JsonValue(settings_.model.height));
    log->Event("map_width", JsonValue(settings_.model.width));
    log->Event("base_filter_count", JsonValue(settings_.model.base_filters));
    log->Event("middle_block_count", JsonValue(settings_.model.middle_blocks));
  }

  const TrainerSpec& spec_;
  const DeepcamSettings settings_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Workload>> MakeDeepcamWorkload(
    const Hyperparameters& parameters, const TrainerSpec& spec) {
  ASSIGN_OR_RETURN(DeepcamSettings settings, ReadSettings(parameters, spec));
  return std::make_unique<const DeepcamWorkload>(spec, std::move(settings));
}

}  // namespace assay
