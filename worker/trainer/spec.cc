#include "worker/trainer/spec.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"

#include "common/file.h"
#include "common/rules/ranks.h"
#include "common/status.h"
#include "worker/trainer/first_error.h"
#include "worker/trainer/hyperparameters.h"
#include "worker/trainer/workload.h"

namespace assay {
namespace {

constexpr int kRanksMax = 1 << 20;
constexpr int64_t kSamplesMax = (int64_t{1} << 31) - 1;  // of a split
constexpr int64_t kLocalBatchMax = 1 << 20;

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

// The coordinator refuses these already; a run spec may come from elsewhere. Whether the backend
// can keep samples, it says itself.
absl::Status CheckLayout(const Hyperparameters& parameters, const v1::RunSpec& run) {
  rules::Hyperparameters values(parameters.values().begin(), parameters.values().end());
  const std::vector<rules::Finding> findings =
      rules::CheckRanks(values, {.benchmark = run.benchmark(),
                                 .nodes = run.node_count(),
                                 .ranks_per_node = run.ranks_per_node()});
  if (findings.empty()) return absl::OkStatus();
  const rules::Finding& first = findings.front();
  return InvalidField(first.key, absl::StrCat("expected ", first.expected, ", found ", first.found,
                                              " (", first.rule_id, "); ", first.remedy));
}

absl::Status FillBatch(const Hyperparameters& parameters, TrainerSpec* spec) {
  constexpr int64_t kReferenceLocalBatch = 4;
  RETURN_IF_ERROR(CheckLayout(parameters, spec->run));
  if (const JsonValue* value = parameters.Find(rules::kSpatialGridKey); value != nullptr) {
    const rules::GridParts parts = *rules::ReadSpatialGrid(*value);
    spec->grid.parts = {static_cast<int>(parts.depth), static_cast<int>(parts.height)};
  }
  ASSIGN_OR_RETURN(
      spec->global_batch_size,
      parameters.Integer(rules::kGlobalBatchKey, kReferenceLocalBatch * spec->group_count()));
  const int64_t local_batch_size = spec->global_batch_size / spec->group_count();
  if (local_batch_size > kLocalBatchMax)
    return InvalidField(rules::kGlobalBatchKey,
                        absl::StrCat("want at most ", kLocalBatchMax, " samples for each of ",
                                     spec->group_count(), ", found ", local_batch_size));
  spec->local_batch_size = static_cast<int>(local_batch_size);
  return absl::OkStatus();
}

absl::Status FillCheckpoints(const Hyperparameters& parameters, TrainerSpec* spec) {
  ASSIGN_OR_RETURN(spec->checkpoint_interval_steps, parameters.Integer(kCheckpointKey, 0));
  if (spec->checkpoint_interval_steps >= 0) return absl::OkStatus();
  return InvalidField(kCheckpointKey, absl::StrCat("want 0 (none) or a number of steps, found ",
                                                   spec->checkpoint_interval_steps));
}

absl::Status FillGradientBuckets(const Hyperparameters& parameters, TrainerSpec* spec) {
  if (parameters.Find(rules::kGradientBucketKey) == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(spec->gradient_bucket_mib,
                   parameters.Integer(rules::kGradientBucketKey, kGradientBucketMib));
  return absl::OkStatus();
}

absl::Status CheckDataset(const v1::RunSpec& run) {
  if (run.dataset().path().empty()) return InvalidField("dataset.path", "missing");
  if (run.dataset().train_sample_count() <= 0 || run.dataset().eval_sample_count() <= 0)
    return InvalidField("dataset", "train_sample_count and eval_sample_count must be positive");
  if (run.dataset().train_sample_count() > kSamplesMax ||
      run.dataset().eval_sample_count() > kSamplesMax)
    return InvalidField(
        "dataset",
        absl::StrCat("train_sample_count and eval_sample_count must be at most ", kSamplesMax));
  if (run.dataset().is_staged() && run.stage_directory().empty())
    return InvalidField("stage_directory", "missing; the dataset is to be staged");
  if (run.log_path().empty()) return InvalidField("log_path", "missing");
  if (run.quality_target() <= 0) return InvalidField("quality_target", "must be positive");
  return absl::OkStatus();
}

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
  RETURN_IF_ERROR(FillBatch(parameters, &spec));
  RETURN_IF_ERROR(FillCheckpoints(parameters, &spec));
  RETURN_IF_ERROR(FillGradientBuckets(parameters, &spec));
  ASSIGN_OR_RETURN(spec.memory_limit_mib, parameters.Integer(rules::kMemoryLimitKey, 0));
  ASSIGN_OR_RETURN(spec.extensions, ReadExtensions(parameters, run));
  const std::string& compression = run.dataset().compression();
  ASSIGN_OR_RETURN(spec.compression,
                   dataset::ParseCompression(compression.empty() ? "none" : compression));
  spec.data_directory = run.dataset().is_staged() ? run.stage_directory() : run.dataset().path();
  if (spec.run.epoch_count_max() == 0) {
    constexpr int kReferenceEpochs = 128;
    spec.run.set_epoch_count_max(kReferenceEpochs);
  }
  ASSIGN_OR_RETURN(const int64_t first_epoch, parameters.FixedInteger("first_epoch_number", 1));
  spec.first_epoch_number = static_cast<int>(first_epoch);
  RETURN_IF_ERROR(MakeWorkload(spec).status());
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
