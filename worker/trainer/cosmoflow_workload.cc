#include "worker/trainer/cosmoflow_workload.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "worker/engine/lr_schedule.h"

namespace assay {
namespace {

constexpr char kBoundariesKey[] = "opt_learning_rate_decay_boundary_epochs";
constexpr char kFactorKey[] = "opt_learning_rate_decay_factor";

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

absl::Status FillSchedule(const Hyperparameters& parameters, TrainerSpec* spec) {
  constexpr double kReferencePeak = 1e-3;
  constexpr int64_t kReferenceWarmupEpochs = 4;
  ASSIGN_OR_RETURN(const double peak, parameters.Number("opt_base_learning_rate", kReferencePeak));
  ASSIGN_OR_RETURN(const double warmup_factor,
                   parameters.Number("opt_learning_rate_warmup_factor", 1));
  ASSIGN_OR_RETURN(spec->schedule.warmup_epochs,
                   parameters.Integer("opt_learning_rate_warmup_epochs", kReferenceWarmupEpochs));
  if (spec->schedule.warmup_epochs > 0 && warmup_factor <= 0) {
    return InvalidField("opt_learning_rate_warmup_factor",
                        absl::StrCat("want a number > 0 with ", spec->schedule.warmup_epochs,
                                     " warm-up epochs, found ", warmup_factor));
  }
  // The log's opt_base_learning_rate is the peak; warm-up starts at peak / factor.
  spec->schedule.scale = warmup_factor > 0 ? warmup_factor : 1;
  spec->schedule.base = peak / spec->schedule.scale;
  ASSIGN_OR_RETURN(spec->schedule.decays, Decays(parameters));
  ASSIGN_OR_RETURN(spec->schedule.fade, Fade(parameters));
  JsonList boundaries;
  for (const LrDecay& decay : spec->schedule.decays)
    boundaries.emplace_back(decay.boundary_epoch);
  spec->logged_decay_boundaries = JsonValue(boundaries);
  if (!spec->schedule.decays.empty()) {
    spec->logged_decay_factor =
        std::max_element(spec->schedule.decays.begin(), spec->schedule.decays.end(),
                         [](const LrDecay& a, const LrDecay& b) { return a.factor < b.factor; })
            ->factor;
  }
  return Validate(spec->schedule);
}

int64_t OrDefault(int64_t value, int64_t otherwise) {
  return value == 0 ? otherwise : value;
}

bool IsClosedMlperf(const v1::RunSpec& run) {
  return run.division() == "closed" && absl::StartsWith(run.round(), "hpc-");
}

absl::Status FillModel(const Hyperparameters& parameters, TrainerSpec* spec) {
  ASSIGN_OR_RETURN(spec->dropout, parameters.Number("dropout", 0.5));
  ASSIGN_OR_RETURN(spec->weight_decay, parameters.Number("opt_weight_decay", 0));
  ASSIGN_OR_RETURN(spec->optimizer_name, parameters.Text("opt_name", "SGD"));
  if (!absl::EqualsIgnoreCase(spec->optimizer_name, "sgd"))
    return InvalidField("opt_name",
                        absl::StrCat("this trainer has sgd, not ", spec->optimizer_name));
  const v1::ModelSpec& model = spec->run.model();
  const CosmoflowSpec reference;
  ASSIGN_OR_RETURN(
      spec->model.cube_edge,
      parameters.Integer("cube_edge", OrDefault(model.cube_edge(), reference.cube_edge)));
  ASSIGN_OR_RETURN(spec->model.base_filters,
                   parameters.Integer("base_filter_count", OrDefault(model.base_filter_count(),
                                                                     reference.base_filters)));
  spec->model.kernel = OrDefault(model.kernel_size(), reference.kernel);
  if (IsClosedMlperf(spec->run) && spec->model.base_filters != reference.base_filters) {
    return InvalidField("base_filter_count",
                        absl::StrCat("the closed division has ", reference.base_filters, ", found ",
                                     spec->model.base_filters));
  }
  spec->model.batch = spec->local_batch_size;
  spec->model.dropout = spec->dropout;
  spec->model.l2 = spec->weight_decay;
  spec->model.grid = spec->grid;
  return Validate(spec->model);
}

class CosmoflowWorkload : public Workload {
 public:
  explicit CosmoflowWorkload(const TrainerSpec& spec) : spec_(spec) {}

  void Describe(ModelSpec* model) const override { model->cosmoflow = spec_.model; }
  DataPlan data() const override {
    return {.format = data::CosmoflowFormat(static_cast<int>(spec_.model.cube_edge),
                                            spec_.compression, Block())};
  }
  double LearningRate(int epoch, int64_t) const override {
    return LearningRateAt(spec_.schedule, epoch);
  }
  bool IsReached(double quality) const override { return quality <= spec_.run.quality_target(); }

  void LogInit(RunLog* log) const override {
    log->InitStart();
    log->Identity();
  }
  void LogStart(RunLog* log) const override { log->Samples(); }
  void LogSettings(RunLog* log) const override {
    log->HyperparametersOfRun();
    log->ExtensionsOfRun();
  }
  void LogEpochStart(RunLog* log, const EpochResult& result) const override {
    log->EpochStart(result.epoch);
  }
  void LogEpochEnd(RunLog* log, const EpochResult& result) const override {
    log->EvalStop(result.epoch);
    log->EpochStop(result.epoch);
    log->EvalError(result.epoch, result.quality);
  }

 private:
  // What this rank keeps of each cube.
  data::CubeBlock Block() const {
    const SpatialPlace place = PlaceOf(spec_.grid, spec_.rank % spec_.grid.size());
    const Interval depth = CosmoflowBlock(spec_.model, place, 0);
    const Interval height = CosmoflowBlock(spec_.model, place, 1);
    return {depth.begin, depth.extent, height.begin, height.extent};
  }

  const TrainerSpec& spec_;
};

}  // namespace

absl::Status FillCosmoflow(const Hyperparameters& parameters, TrainerSpec* spec) {
  RETURN_IF_ERROR(FillSchedule(parameters, spec));
  return FillModel(parameters, spec);
}

std::unique_ptr<Workload> MakeCosmoflowWorkload(const TrainerSpec& spec) {
  return std::make_unique<CosmoflowWorkload>(spec);
}

}  // namespace assay
