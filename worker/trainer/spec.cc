#include "worker/trainer/spec.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

#include "common/file.h"
#include "common/status.h"
#include "worker/trainer/hyperparameters.h"
#include "worker/trainer/workload.h"

namespace assay {
namespace {

constexpr int kRanksMax = 1 << 20;
constexpr char kGridKey[] = "spatial_grid";

absl::Status FillRanks(const v1::RunSpec& run, TrainerSpec* spec) {
  const int64_t ranks_per_node = std::max(run.ranks_per_node(), 1);
  const int64_t world_size = int64_t{std::max(run.node_count(), 1)} * ranks_per_node;
  const int64_t rank = run.node_rank() * ranks_per_node + run.local_rank();
  if (world_size > kRanksMax) return InvalidField("node_count", absl::StrCat(world_size, " ranks"));
  if (run.local_rank() < 0 || run.local_rank() >= ranks_per_node || rank < 0 || rank >= world_size)
    return InvalidField("node_rank, local_rank",
                        absl::StrCat("rank ", rank, " of ", world_size, " ranks"));
  if (world_size > 1 && run.rendezvous_address().empty())
    return InvalidField("rendezvous_address", "missing; every run of several ranks needs one");
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
    return InvalidField(kGridKey,
                        "want two whole numbers from 1 to 64: parts along depth and height");
  spec->grid.parts = {static_cast<int>(parts[0]), static_cast<int>(parts[1])};
  const int size = spec->grid.size(), per_node = std::max(spec->run.ranks_per_node(), 1);
  if (spec->world_size % size != 0) {
    return InvalidField(kGridKey, absl::StrCat(spec->grid.ToString(), " needs a multiple of ", size,
                                               " ranks, there are ", spec->world_size));
  }
  if (size % per_node != 0 && per_node % size != 0) {
    return InvalidField(kGridKey, absl::StrCat("groups of ", size, " ranks do not fit nodes of ",
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
    return InvalidField("global_batch_size",
                        absl::StrCat("want a positive multiple of the ", spec->group_count(),
                                     spec->grid.IsSplit() ? " spatial groups" : " ranks",
                                     ", found ", spec->global_batch_size));
  }
  spec->local_batch_size = static_cast<int>(spec->global_batch_size / spec->group_count());
  return absl::OkStatus();
}

absl::Status FillCheckpoints(const Hyperparameters& parameters, TrainerSpec* spec) {
  ASSIGN_OR_RETURN(spec->checkpoint_interval_steps, parameters.Integer(kCheckpointKey, 0));
  if (spec->checkpoint_interval_steps >= 0) return absl::OkStatus();
  return InvalidField(kCheckpointKey, absl::StrCat("want 0 (none) or a number of steps, found ",
                                                   spec->checkpoint_interval_steps));
}

absl::Status CheckDataset(const v1::RunSpec& run) {
  RETURN_IF_ERROR(FindWorkload(run.benchmark()).status());
  if (run.dataset().path().empty()) return InvalidField("dataset.path", "missing");
  if (run.dataset().train_sample_count() <= 0 || run.dataset().eval_sample_count() <= 0)
    return InvalidField("dataset", "train_sample_count and eval_sample_count must be positive");
  if (run.dataset().is_staged() && run.stage_directory().empty())
    return InvalidField("stage_directory", "missing; the dataset is to be staged");
  if (run.log_path().empty()) return InvalidField("log_path", "missing");
  if (run.quality_target() <= 0) return InvalidField("quality_target", "must be positive");
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
  ASSIGN_OR_RETURN(const WorkloadEntry* const workload, FindWorkload(run.benchmark()));
  RETURN_IF_ERROR(FillCheckpoints(parameters, &spec));
  ASSIGN_OR_RETURN(spec.extensions, ReadExtensions(parameters, run));
  RETURN_IF_ERROR(workload->fill(parameters, &spec));
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
