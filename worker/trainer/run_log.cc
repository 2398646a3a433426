#include "worker/trainer/run_log.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/rules/ranks.h"
#include "common/status.h"

namespace assay {

absl::StatusOr<std::unique_ptr<RunLog>> RunLog::Open(const TrainerSpec& spec, const Clock* clock) {
  UniqueFd file;
  if (spec.rank == 0) {
    const std::string& path = spec.run.log_path();
    file = UniqueFd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  return std::unique_ptr<RunLog>(new RunLog(spec, clock, std::move(file)));
}

RunLog::RunLog(const TrainerSpec& spec, const Clock* clock, UniqueFd file)
    : spec_(spec),
      clock_(clock),
      file_(std::move(file)),
      writer_([this] { return absl::ToUnixMillis(clock_.Stamp()); },
              [this](absl::string_view line) {
                if (!file_.is_open() || !status_.ok() || is_muted_) return;
                status_ = Annotate(WriteAll(file_.get(), line), spec_.run.log_path());
              }) {}

JsonObject RunLog::EpochNumber(int epoch) const {
  return {{"epoch_num", JsonValue(epoch + spec_.first_epoch_number)}};
}

void RunLog::InitStart() {
  writer_.Start("init_start");
}

JsonObject RunLog::EpochNumber(int epoch, JsonObject more) const {
  JsonObject all = EpochNumber(epoch);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void RunLog::Identity() {
  Scale();
  Submission();
}

void RunLog::Scale() {
  const v1::RunSpec& run = spec_.run;
  const int ranks_per_node = spec_.world_size / std::max(run.node_count(), 1);
  const bool is_on_gpu = absl::StartsWith(run.trainer().backend(), "cuda");
  // The reference logs the seed as the start of an interval.
  writer_.Start("seed", JsonValue(run.seed()));
  writer_.Event("number_of_ranks", spec_.world_size);
  writer_.Event("number_of_nodes", std::max(run.node_count(), 1));
  writer_.Event("accelerators_per_node", is_on_gpu ? ranks_per_node : 0);
  // Its name says how exactly products are computed. In float32 on a CPU a log is as the
  // reference's.
  if (!run.trainer().backend().empty() && run.trainer().backend() != "onednn")
    writer_.Event("backend", JsonValue(run.trainer().backend()));
}

void RunLog::Submission() {
  const v1::RunSpec& run = spec_.run;
  writer_.Event("submission_benchmark", JsonValue(run.benchmark()));
  writer_.Event("submission_org", JsonValue(run.organization()));
  writer_.Event("submission_division", JsonValue(run.division()));
  writer_.Event("submission_status", JsonValue(run.status()));
  writer_.Event("submission_platform", JsonValue(run.system()));
}

void RunLog::InitStop() {
  writer_.End("init_stop");
}

void RunLog::RunStart() {
  writer_.Start("run_start");
}

void RunLog::Samples() {
  writer_.Event("global_batch_size", JsonValue(spec_.global_batch_size));
  writer_.Event("train_samples", JsonValue(spec_.run.dataset().train_sample_count()));
  writer_.Event("eval_samples", JsonValue(spec_.run.dataset().eval_sample_count()));
}

void RunLog::StagingStart(int64_t cached_bytes) {
  JsonObject metadata;
  if (cached_bytes > 0) metadata.emplace_back("cache_hit_bytes", JsonValue(cached_bytes));
  writer_.Start("staging_start", {}, std::move(metadata));
}

void RunLog::StagingStop() {
  writer_.End("staging_stop");
}

void RunLog::ExtensionsOfRun() {
  const Extensions& extensions = spec_.extensions;
  if (extensions.eval_batch > 0)
    writer_.Event(kEvalBatchKey, JsonValue(int64_t{extensions.eval_batch}));
  if (spec_.gradient_bucket_mib.has_value())
    writer_.Event(rules::kGradientBucketKey, JsonValue(*spec_.gradient_bucket_mib));
  if (spec_.memory_limit_mib > 0)
    writer_.Event(rules::kMemoryLimitKey, JsonValue(spec_.memory_limit_mib));
  if (extensions.device_cache_mib > 0)
    writer_.Event(rules::kDeviceCacheKey, JsonValue(extensions.device_cache_mib));
  if (extensions.augmentation != data::Augmentation::kNone)
    writer_.Event(kAugmentationKey, JsonValue(data::AugmentationName(extensions.augmentation)));
  if (extensions.gradient_skip.IsUsed()) {
    writer_.Event(kGradientSkipLayerKey, JsonValue(extensions.gradient_skip.layer));
    writer_.Event(kGradientSkipEpochsKey, JsonValue(extensions.gradient_skip.after_epochs));
  }
}

void RunLog::EpochStart(int epoch, JsonObject more) {
  writer_.Start("epoch_start", {}, EpochNumber(epoch, std::move(more)));
}

void RunLog::EvalStart(int epoch) {
  writer_.Start("eval_start", {}, EpochNumber(epoch));
}

void RunLog::EvalStop(int epoch) {
  writer_.End("eval_stop", {}, EpochNumber(epoch));
}

void RunLog::EpochStop(int epoch, JsonObject more) {
  writer_.End("epoch_stop", {}, EpochNumber(epoch, std::move(more)));
}

void RunLog::Resumed(int epoch, int64_t step) {
  writer_.Event(
      "resumed", {},
      {{"epoch_num", JsonValue(epoch + spec_.first_epoch_number)}, {"step_num", JsonValue(step)}});
}

void RunLog::Event(absl::string_view key, JsonValue value, JsonObject metadata) {
  writer_.Event(key, std::move(value), std::move(metadata));
}

void RunLog::RunStop(absl::string_view status) {
  writer_.End("run_stop", {}, {{"status", JsonValue(status)}});
}

}  // namespace assay
