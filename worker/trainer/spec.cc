#include "worker/trainer/spec.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

#include "common/file.h"
#include "common/json_reader.h"
#include "common/status.h"

namespace assay {
namespace {

constexpr int kRanksMax = 1 << 20;

absl::Status Invalid(absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", problem));
}

// The hyperparameters of a run, read by key; each read checks the type.
class Hyperparameters {
 public:
  static absl::StatusOr<Hyperparameters> Parse(const v1::RunSpec& run) {
    Hyperparameters result;
    for (const v1::Hyperparameter& parameter : run.hyperparameters()) {
      const JsonResult parsed = ParseJson(parameter.json_value());
      if (parsed.error != JsonError::kNone)
        return Invalid(parameter.key(), absl::StrCat("not JSON: ", parameter.json_value()));
      result.values_[parameter.key()] = parsed.value;
    }
    return result;
  }

  absl::StatusOr<double> Number(const std::string& key, double otherwise) const {
    const JsonValue* value = Find(key);
    if (value == nullptr) return otherwise;
    const std::optional<double> number = value->ToDouble();
    if (!number.has_value() || !std::isfinite(*number) || value->AsBool().has_value())
      return Invalid(key, absl::StrCat("want a number, found ", DumpJson(*value)));
    return *number;
  }

  absl::StatusOr<int64_t> Integer(const std::string& key, int64_t otherwise) const {
    const JsonValue* value = Find(key);
    if (value == nullptr) return otherwise;
    const std::optional<int64_t> number = value->AsInt64();
    if (!number.has_value())
      return Invalid(key, absl::StrCat("want an integer, found ", DumpJson(*value)));
    return *number;
  }

  absl::StatusOr<std::string> Text(const std::string& key, const std::string& otherwise) const {
    const JsonValue* value = Find(key);
    if (value == nullptr) return otherwise;
    if (value->AsString() == nullptr)
      return Invalid(key, absl::StrCat("want a string, found ", DumpJson(*value)));
    return *value->AsString();
  }

  // A list of numbers; a single number is a list of one.
  absl::StatusOr<std::vector<double>> Numbers(const std::string& key) const {
    const JsonValue* value = Find(key);
    if (value == nullptr) return std::vector<double>();
    const JsonList single = {*value};
    const JsonList& list = value->AsList() == nullptr ? single : *value->AsList();
    std::vector<double> numbers;
    for (const JsonValue& element : list) {
      const std::optional<double> number = element.ToDouble();
      if (!number.has_value() || !std::isfinite(*number))
        return Invalid(key, absl::StrCat("want numbers, found ", DumpJson(element)));
      numbers.push_back(*number);
    }
    return numbers;
  }

 private:
  const JsonValue* Find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

  std::map<std::string, JsonValue> values_;
};

constexpr char kBoundariesKey[] = "opt_learning_rate_decay_boundary_epochs";
constexpr char kGridKey[] = "spatial_grid";
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
    return Invalid(kFactorKey, absl::StrCat("want one number or ", boundaries.size(),
                                            ", one for each boundary, found ", factors.size()));
  }
  std::vector<LrDecay> decays;
  for (size_t i = 0; i < boundaries.size(); ++i)
    decays.push_back({static_cast<int64_t>(boundaries[i]), factors[i]});
  std::sort(decays.begin(), decays.end(),
            [](const LrDecay& a, const LrDecay& b) { return a.boundary_epoch < b.boundary_epoch; });
  return decays;
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
    return Invalid("opt_learning_rate_warmup_factor",
                   absl::StrCat("want a number > 0 with ", spec->schedule.warmup_epochs,
                                " warm-up epochs, found ", warmup_factor));
  }
  // The log's opt_base_learning_rate is the peak; warm-up starts at peak / factor.
  spec->schedule.scale = warmup_factor > 0 ? warmup_factor : 1;
  spec->schedule.base = peak / spec->schedule.scale;
  ASSIGN_OR_RETURN(spec->schedule.decays, Decays(parameters));
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

absl::Status FillRanks(const v1::RunSpec& run, TrainerSpec* spec) {
  const int64_t ranks_per_node = std::max(run.ranks_per_node(), 1);
  const int64_t world_size = int64_t{std::max(run.node_count(), 1)} * ranks_per_node;
  const int64_t rank = run.node_rank() * ranks_per_node + run.local_rank();
  if (world_size > kRanksMax) return Invalid("node_count", absl::StrCat(world_size, " ranks"));
  if (run.local_rank() < 0 || run.local_rank() >= ranks_per_node || rank < 0 || rank >= world_size)
    return Invalid("node_rank, local_rank",
                   absl::StrCat("rank ", rank, " of ", world_size, " ranks"));
  if (world_size > 1 && run.rendezvous_address().empty())
    return Invalid("rendezvous_address", "missing; every run of several ranks needs one");
  spec->rank = static_cast<int>(rank);
  spec->world_size = static_cast<int>(world_size);
  return absl::OkStatus();
}

// A group is spread over whole nodes, or a node holds whole groups.
absl::Status FillGrid(const Hyperparameters& parameters, TrainerSpec* spec) {
  ASSIGN_OR_RETURN(const std::vector<double> parts, parameters.Numbers(kGridKey));
  if (parts.empty()) return absl::OkStatus();
  const auto is_count = [](double x) { return x >= 1 && x <= 64 && x == std::floor(x); };
  if (parts.size() != 2 || !std::all_of(parts.begin(), parts.end(), is_count))
    return Invalid(kGridKey, "want two whole numbers from 1 to 64: parts along depth and height");
  spec->grid.parts = {static_cast<int>(parts[0]), static_cast<int>(parts[1])};
  const int size = spec->grid.size(), per_node = std::max(spec->run.ranks_per_node(), 1);
  if (spec->world_size % size != 0) {
    return Invalid(kGridKey, absl::StrCat(spec->grid.ToString(), " needs a multiple of ", size,
                                          " ranks, there are ", spec->world_size));
  }
  if (size % per_node != 0 && per_node % size != 0) {
    return Invalid(kGridKey, absl::StrCat("groups of ", size, " ranks do not fit nodes of ",
                                          per_node, ": one must divide the other"));
  }
  return absl::OkStatus();
}

absl::Status FillBatch(const Hyperparameters& parameters, TrainerSpec* spec) {
  constexpr int64_t kReferenceLocalBatch = 4;
  ASSIGN_OR_RETURN(
      spec->global_batch_size,
      parameters.Integer("global_batch_size", kReferenceLocalBatch * spec->group_count()));
  if (spec->global_batch_size <= 0 || spec->global_batch_size % spec->group_count() != 0) {
    return Invalid("global_batch_size",
                   absl::StrCat("want a positive multiple of the ", spec->group_count(),
                                spec->grid.IsSplit() ? " spatial groups" : " ranks", ", found ",
                                spec->global_batch_size));
  }
  spec->local_batch_size = static_cast<int>(spec->global_batch_size / spec->group_count());
  return absl::OkStatus();
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
    return Invalid("opt_name", absl::StrCat("this trainer has sgd, not ", spec->optimizer_name));
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
    return Invalid("base_filter_count",
                   absl::StrCat("the closed division has ", reference.base_filters, ", found ",
                                spec->model.base_filters));
  }
  spec->model.batch = spec->local_batch_size;
  spec->model.dropout = spec->dropout;
  spec->model.l2 = spec->weight_decay;
  spec->model.grid = spec->grid;
  return Validate(spec->model);
}

absl::Status FillCheckpoints(const Hyperparameters& parameters, TrainerSpec* spec) {
  ASSIGN_OR_RETURN(spec->checkpoint_interval_steps, parameters.Integer(kCheckpointKey, 0));
  if (spec->checkpoint_interval_steps >= 0) return absl::OkStatus();
  return Invalid(kCheckpointKey, absl::StrCat("want 0 (none) or a number of steps, found ",
                                              spec->checkpoint_interval_steps));
}

absl::Status CheckDataset(const v1::RunSpec& run) {
  if (run.benchmark() != "cosmoflow")
    return Invalid("benchmark", absl::StrCat("want cosmoflow, found \"", run.benchmark(), "\""));
  if (run.dataset().path().empty()) return Invalid("dataset.path", "missing");
  if (run.dataset().train_sample_count() <= 0 || run.dataset().eval_sample_count() <= 0)
    return Invalid("dataset", "train_sample_count and eval_sample_count must be positive");
  if (run.dataset().is_staged() && run.stage_directory().empty())
    return Invalid("stage_directory", "missing; the dataset is to be staged");
  if (run.log_path().empty()) return Invalid("log_path", "missing");
  if (run.quality_target() <= 0) return Invalid("quality_target", "must be positive");
  return absl::OkStatus();
}

// Collects the first syntax error of a text proto.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

int TrainerSpec::group_ranks_per_node() const {
  return std::min(grid.size(), std::max(run.ranks_per_node(), 1));
}

absl::StatusOr<TrainerSpec> MakeTrainerSpec(const v1::RunSpec& run) {
  TrainerSpec spec;
  spec.run = run;
  RETURN_IF_ERROR(CheckDataset(run));
  RETURN_IF_ERROR(FillRanks(run, &spec));
  ASSIGN_OR_RETURN(const Hyperparameters parameters, Hyperparameters::Parse(run));
  RETURN_IF_ERROR(FillGrid(parameters, &spec));
  RETURN_IF_ERROR(FillBatch(parameters, &spec));
  RETURN_IF_ERROR(FillSchedule(parameters, &spec));
  RETURN_IF_ERROR(FillModel(parameters, &spec));
  RETURN_IF_ERROR(FillCheckpoints(parameters, &spec));
  const std::string& compression = run.dataset().compression();
  ASSIGN_OR_RETURN(spec.compression,
                   dataset::ParseCompression(compression.empty() ? "none" : compression));
  spec.data_directory = run.dataset().is_staged() ? run.stage_directory() : run.dataset().path();
  if (spec.run.epoch_count_max() == 0) {
    constexpr int kReferenceEpochs = 128;
    spec.run.set_epoch_count_max(kReferenceEpochs);
  }
  if (absl::StrContains(run.round(), "0.7")) spec.first_epoch_number = 0;
  return spec;
}

absl::Status Resume(TrainerSpec* spec) {
  if (IsClosedMlperf(spec->run)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot resume: in the closed division of ", spec->run.round(),
                     " the time of a run has no pause; submit a new run"));
  }
  spec->is_resumed = true;
  return absl::OkStatus();
}

absl::StatusOr<TrainerSpec> LoadTrainerSpec(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  v1::RunSpec run;
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &run))
    return absl::InvalidArgumentError(absl::StrCat(path, ":", error.text()));
  absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);
  if (!spec.ok()) return Annotate(spec.status(), path);
  return spec;
}

}  // namespace assay
