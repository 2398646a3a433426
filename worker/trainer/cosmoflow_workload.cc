#include "worker/trainer/cosmoflow_workload.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/rules/ranks.h"
#include "common/status.h"
#include "worker/engine/lr_schedule.h"

namespace assay {
namespace {

constexpr char kBoundariesKey[] = "opt_learning_rate_decay_boundary_epochs";
constexpr char kFactorKey[] = "opt_learning_rate_decay_factor";
// Of the decay that the reference lacks (LrFade).
constexpr char kFadeEpochsKey[] = "opt_learning_rate_decay_epochs";
constexpr char kFadeEndKey[] = "opt_learning_rate_decay_end_factor";
constexpr char kFadePowerKey[] = "opt_learning_rate_decay_poly_power";

struct CosmoflowSettings {
  CosmoflowSpec model;
  LrSchedule schedule;
  std::string optimizer_name;
};

// A single factor f at n boundaries means f, f^2, ..., f^n of the peak.
absl::StatusOr<std::vector<LrDecay>> Decays(const Hyperparameters& parameters) {
  ASSIGN_OR_RETURN(std::vector<double> boundaries, parameters.Numbers(kBoundariesKey));
  ASSIGN_OR_RETURN(std::vector<double> factors, parameters.Numbers(kFactorKey));
  if (factors.size() == 1) {
    const double factor = factors[0];
    for (size_t i = 1; i < boundaries.size(); ++i)
      factors.push_back(factors.back() * factor);
  }
  if (!boundaries.empty() && factors.size() != boundaries.size()) {
    return InvalidField(kFactorKey,
                        absl::StrCat("want one number or ", boundaries.size(),
                                     ", one for each boundary, found ", factors.size()));
  }
  std::vector<LrDecay> decays;
  for (size_t i = 0; i < boundaries.size(); ++i)
    decays.push_back({static_cast<int64_t>(boundaries[i]), factors[i]});
  std::sort(decays.begin(), decays.end(),
            [](const LrDecay& a, const LrDecay& b) { return a.boundary_epoch < b.boundary_epoch; });
  return decays;
}

// The decay over epochs that the reference lacks.
absl::StatusOr<LrFade> Fade(const Hyperparameters& parameters) {
  LrFade fade;
  ASSIGN_OR_RETURN(fade.epochs, parameters.Integer(kFadeEpochsKey, fade.epochs));
  ASSIGN_OR_RETURN(fade.end_factor, parameters.Number(kFadeEndKey, fade.end_factor));
  ASSIGN_OR_RETURN(fade.power, parameters.Number(kFadePowerKey, fade.power));
  return fade;
}

absl::StatusOr<LrSchedule> ReadSchedule(const Hyperparameters& parameters) {
  constexpr double kReferencePeak = 1e-3;
  constexpr int64_t kReferenceWarmupEpochs = 4;
  LrSchedule schedule;
  ASSIGN_OR_RETURN(const double peak, parameters.Number("opt_base_learning_rate", kReferencePeak));
  ASSIGN_OR_RETURN(const double warmup_factor,
                   parameters.Number("opt_learning_rate_warmup_factor", 1));
  ASSIGN_OR_RETURN(schedule.warmup_epochs,
                   parameters.Integer("opt_learning_rate_warmup_epochs", kReferenceWarmupEpochs));
  if (schedule.warmup_epochs > 0 && warmup_factor <= 0) {
    return InvalidField("opt_learning_rate_warmup_factor",
                        absl::StrCat("want a number > 0 with ", schedule.warmup_epochs,
                                     " warm-up epochs, found ", warmup_factor));
  }
  // The log's opt_base_learning_rate is the peak; warm-up starts at peak / factor.
  schedule.scale = warmup_factor > 0 ? warmup_factor : 1;
  schedule.base = peak / schedule.scale;
  ASSIGN_OR_RETURN(schedule.decays, Decays(parameters));
  ASSIGN_OR_RETURN(schedule.fade, Fade(parameters));
  RETURN_IF_ERROR(Validate(schedule));
  return schedule;
}

absl::StatusOr<std::string> ReadOptimizer(const Hyperparameters& parameters) {
  ASSIGN_OR_RETURN(std::string name, parameters.Text("opt_name", "SGD"));
  if (absl::EqualsIgnoreCase(name, "sgd")) return name;
  return InvalidField("opt_name", absl::StrCat("this trainer has sgd, not ", name));
}

absl::StatusOr<CosmoflowSpec> ReadModel(const Hyperparameters& parameters,
                                        const TrainerSpec& spec) {
  const CosmoflowSpec reference;
  CosmoflowSpec model;
  ASSIGN_OR_RETURN(model.dropout, parameters.Number("dropout", 0.5));
  // Keras' l2: adds l2 * sum(w^2) to the loss.
  ASSIGN_OR_RETURN(model.l2, parameters.Number("opt_weight_decay", 0));
  ASSIGN_OR_RETURN(model.cube_edge, parameters.Integer("cube_edge", reference.cube_edge));
  ASSIGN_OR_RETURN(model.base_filters,
                   parameters.Integer("base_filter_count", reference.base_filters));
  ASSIGN_OR_RETURN(model.kernel, parameters.FixedInteger("kernel_size", reference.kernel));
  if (IsClosedMlperf(spec.run) && model.base_filters != reference.base_filters) {
    return InvalidField("base_filter_count",
                        absl::StrCat("the closed division has ", reference.base_filters, ", found ",
                                     model.base_filters));
  }
  model.batch = spec.local_batch_size;
  model.grid = spec.grid;
  RETURN_IF_ERROR(Validate(model));
  return model;
}

absl::StatusOr<CosmoflowSettings> ReadSettings(const Hyperparameters& parameters,
                                               const TrainerSpec& spec) {
  CosmoflowSettings settings;
  ASSIGN_OR_RETURN(settings.schedule, ReadSchedule(parameters));
  ASSIGN_OR_RETURN(settings.optimizer_name, ReadOptimizer(parameters));
  ASSIGN_OR_RETURN(settings.model, ReadModel(parameters, spec));
  return settings;
}

class CosmoflowWorkload : public Workload {
 public:
  CosmoflowWorkload(const TrainerSpec& spec, CosmoflowSettings settings)
      : spec_(spec), settings_(std::move(settings)) {}

  void Describe(ModelSpec* model) const override { model->cosmoflow = settings_.model; }
  DataPlan data() const override {
    return {.format = data::CosmoflowFormat(static_cast<int>(settings_.model.cube_edge),
                                            spec_.compression, Block())};
  }
  double LearningRate(int epoch, int64_t) const override {
    return LearningRateAt(settings_.schedule, epoch);
  }
  bool IsReached(double quality) const override { return quality <= spec_.run.quality_target(); }

  void LogInit(RunLog* log) const override {
    log->InitStart();
    log->Identity();
  }
  void LogStart(RunLog* log) const override { log->Samples(); }
  void LogSettings(RunLog* log) const override {
    LogHyperparameters(log);
    LogModel(log);
    log->ExtensionsOfRun();
    LogFade(log);
  }
  void LogEpochStart(RunLog* log, const EpochResult& result) const override {
    log->EpochStart(result.epoch);
  }
  void LogEpochEnd(RunLog* log, const EpochResult& result) const override {
    log->EvalStop(result.epoch);
    log->EpochStop(result.epoch);
    log->Event("eval_error", result.quality, log->EpochNumber(result.epoch));
  }

 private:
  // What this rank keeps of each cube.
  data::CubeBlock Block() const {
    const SpatialPlace place = PlaceOf(spec_.grid, spec_.rank % spec_.grid.size());
    const Interval depth = CosmoflowBlock(settings_.model, place, 0);
    const Interval height = CosmoflowBlock(settings_.model, place, 1);
    return {depth.begin, depth.extent, height.begin, height.extent};
  }

  void LogHyperparameters(RunLog* log) const {
    const LrSchedule& schedule = settings_.schedule;
    log->Event("opt_weight_decay", settings_.model.l2);
    log->Event("dropout", settings_.model.dropout);
    log->Event("opt_name", JsonValue(settings_.optimizer_name));
    log->Event("opt_base_learning_rate", schedule.peak());
    log->Event("opt_learning_rate_warmup_epochs", JsonValue(schedule.warmup_epochs));
    log->Event("opt_learning_rate_warmup_factor", schedule.scale);
    LogDecays(log);
    // Not a hyperparameter: the result is the same but for rounding. Logged as the other scales
    // are.
    if (spec_.grid.IsSplit()) {
      const JsonList parts = {JsonValue(spec_.grid.parts[0]), JsonValue(spec_.grid.parts[1])};
      log->Event(rules::kSpatialGridKey, JsonValue(parts));
    }
    if (spec_.checkpoint_interval_steps > 0)
      log->Event(kCheckpointKey, JsonValue(spec_.checkpoint_interval_steps));
  }

  // As the reference does: the boundaries, sorted, and the largest of the factors.
  void LogDecays(RunLog* log) const {
    JsonList boundaries;
    double factor = 1;
    for (const LrDecay& decay : settings_.schedule.decays) {
      factor = boundaries.empty() ? decay.factor : std::max(factor, decay.factor);
      boundaries.emplace_back(decay.boundary_epoch);
    }
    log->Event(kBoundariesKey, JsonValue(boundaries));
    log->Event(kFactorKey, factor);
  }

  // MLPerf fixes the model, so its logs do not describe it; a facility's own round may vary it.
  void LogModel(RunLog* log) const {
    if (absl::StartsWith(spec_.run.round(), "hpc-")) return;
    log->Event("cube_edge", JsonValue(settings_.model.cube_edge));
    log->Event("kernel_size", JsonValue(settings_.model.kernel));
    log->Event("base_filter_count", JsonValue(settings_.model.base_filters));
  }

  void LogFade(RunLog* log) const {
    const LrFade& fade = settings_.schedule.fade;
    if (fade.epochs == 0) return;
    log->Event(kFadeEpochsKey, JsonValue(fade.epochs));
    log->Event(kFadeEndKey, fade.end_factor);
    log->Event(kFadePowerKey, fade.power);
  }

  const TrainerSpec& spec_;
  const CosmoflowSettings settings_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Workload>> MakeCosmoflowWorkload(
    const Hyperparameters& parameters, const TrainerSpec& spec) {
  ASSIGN_OR_RETURN(CosmoflowSettings settings, ReadSettings(parameters, spec));
  return std::make_unique<const CosmoflowWorkload>(spec, std::move(settings));
}

}  // namespace assay
