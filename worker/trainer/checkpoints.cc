#include "worker/trainer/checkpoints.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"

#include "common/file.h"
#include "common/log.h"
#include "common/mllog.h"
#include "common/rules/ranks.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/comm/ring.h"
#include "worker/trainer/failure.h"

namespace assay {
namespace {

// What rank 0 tells the others about its checkpoint.
enum class Found : int64_t { kNone, kRestored, kUnusable };

}  // namespace

std::string IdentityOfRun(const TrainerSpec& spec) {
  v1::RunSpec run = spec.run;
  run.clear_generation();
  run.clear_epoch_count_max();
  run.clear_quality_target();
  run.clear_rule_set_toml();
  run.clear_node_rank();
  run.clear_local_rank();
  run.clear_rendezvous_address();
  run.clear_rendezvous_token();
  run.clear_rendezvous_listener();
  run.clear_is_rank_network_trusted();
  run.clear_collective_timeout_ms();
  run.clear_run_timeout_ms();
  run.clear_log_path();
  run.clear_progress_path();
  run.clear_checkpoint_path();
  run.clear_stage_directory();
  run.clear_node_cache();
  run.mutable_dataset()->clear_path();
  v1::RunSpec kept = run;
  kept.clear_hyperparameters();
  for (const v1::Hyperparameter& parameter : run.hyperparameters())
    if (parameter.key() != kCheckpointKey && parameter.key() != rules::kDeviceCacheKey)
      *kept.add_hyperparameters() = parameter;
  std::string text;
  CHECK(google::protobuf::TextFormat::PrintToString(kept, &text));
  return Sha256Hex(text);
}

std::string CheckpointPath(const TrainerSpec& spec) {
  if (!spec.run.checkpoint_path().empty()) return spec.run.checkpoint_path();
  return absl::StrCat(spec.run.log_path(), ".checkpoint");
}

Checkpoints::Checkpoints(const TrainerSpec& spec, Trainable* model, int64_t steps_per_epoch)
    : spec_(spec),
      model_(model),
      steps_per_epoch_(steps_per_epoch),
      buffers_(model->buffers().size() * static_cast<size_t>(spec.world_size)) {}

std::vector<CheckpointSection> Checkpoints::Sections() {
  std::vector<CheckpointSection> sections = {
      {"parameters", std::as_writable_bytes(model_->parameters())},
      {"optimizer", std::as_writable_bytes(model_->optimizer_state())}};
  if (!buffers_.empty())
    sections.push_back({"buffers", std::as_writable_bytes(std::span(buffers_))});
  return sections;
}

int64_t Checkpoints::StepsBefore(const TrainingPosition& position) const {
  return position.epoch * steps_per_epoch_ + position.step;
}

absl::Status Checkpoints::GatherBuffers(comm::Collective* comm, MonoTime deadline) {
  if (buffers_.empty()) return absl::OkStatus();
  return WithExitCode(comm::AllGather(comm, std::as_bytes(model_->buffers()),
                                      std::as_writable_bytes(std::span(buffers_)), deadline),
                      ExitCode::kCommLost);
}

// Makes the model go on from what the sections hold.
void Checkpoints::TakeOver(const TrainingPosition& position) {
  model_->ParametersChanged();
  model_->set_batches_done(StepsBefore(position));
  if (buffers_.empty()) return;
  const std::span<float> mine = model_->buffers();
  std::copy_n(buffers_.begin() + spec_.rank * std::ssize(mine), std::ssize(mine), mine.begin());
  model_->BuffersChanged();
}

absl::StatusOr<TrainingPosition> Checkpoints::Read(
    std::span<const CheckpointSection> sections) const {
  const absl::StatusOr<std::string> log = ReadFile(spec_.run.log_path(), kMllogFileBytesMax);
  if (log.ok() && absl::StrContains(*log, "\"status\": \"success\""))
    return absl::FailedPreconditionError(
        absl::StrCat(spec_.run.log_path(), ": the run has reached its target; nothing to resume"));
  return ReadCheckpoint(CheckpointPath(spec_), IdentityOfRun(spec_), sections);
}

absl::StatusOr<std::optional<TrainingPosition>> Checkpoints::Restore(comm::Collective* comm,
                                                                     MonoTime deadline) {
  // Taken once: where the model is on a device, the next call would fetch its numbers anew.
  const std::vector<CheckpointSection> sections = Sections();
  absl::Status status;
  std::array<int64_t, 3> news = {};  // Found, epoch, step
  if (spec_.rank == 0) {
    const absl::StatusOr<TrainingPosition> read = Read(sections);
    if (read.ok()) {
      news = {static_cast<int64_t>(Found::kRestored), read->epoch, read->step};
    } else if (read.status().code() != absl::StatusCode::kNotFound) {
      status = read.status();
      news[0] = static_cast<int64_t>(Found::kUnusable);
    }
  }
  RETURN_IF_ERROR(
      WithExitCode(comm::BroadcastFromZero(comm, std::as_writable_bytes(std::span(news)), deadline),
                   ExitCode::kCommLost));
  if (news[0] == static_cast<int64_t>(Found::kNone)) return std::nullopt;
  if (news[0] == static_cast<int64_t>(Found::kUnusable)) {
    if (status.ok()) status = absl::FailedPreconditionError("rank 0 cannot read its checkpoint");
    return WithExitCode(status, ExitCode::kBadSpec);
  }
  for (const CheckpointSection& section : sections)
    RETURN_IF_ERROR(
        WithExitCode(comm::BroadcastFromZero(comm, section.bytes, deadline), ExitCode::kCommLost));
  const TrainingPosition position = {news[1], news[2]};
  TakeOver(position);
  return position;
}

bool Checkpoints::IsDue(const TrainingPosition& position) const {
  const int64_t interval = spec_.checkpoint_interval_steps, steps = StepsBefore(position);
  return interval > 0 && steps % interval == 0 && steps % model_->accumulation() == 0;
}

absl::Status Checkpoints::Save(const TrainingPosition& position, comm::Collective* comm,
                               MonoTime deadline) {
  model_->Synchronize();
  RETURN_IF_ERROR(GatherBuffers(comm, deadline));
  if (spec_.rank != 0) return absl::OkStatus();
  return WithExitCode(
      WriteCheckpoint(CheckpointPath(spec_), {IdentityOfRun(spec_), position}, Sections()),
      ExitCode::kDisk);
}

}  // namespace assay
