// The conversions of submissions that convert.h declares.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/rpc/finding_proto.h"
#include "common/status.h"
#include "server/api/convert.h"

namespace assay::api {
namespace {

int64_t ToMilliseconds(const google::protobuf::Duration& duration) {
  return duration.seconds() * 1000 + duration.nanos() / 1'000'000;
}

v1::Submission::State ValueOf(core::SubmissionState state) {
  switch (state) {
    case core::SubmissionState::kOpen:
      return v1::Submission::OPEN;
    case core::SubmissionState::kRunning:
      return v1::Submission::RUNNING;
    case core::SubmissionState::kChecking:
      return v1::Submission::CHECKING;
    case core::SubmissionState::kValid:
      return v1::Submission::VALID;
    case core::SubmissionState::kInvalid:
      return v1::Submission::INVALID;
    case core::SubmissionState::kCancelled:
      return v1::Submission::CANCELLED;
  }
  return v1::Submission::STATE_UNSPECIFIED;
}

void SetBorrowing(const core::BorrowingRecord& record, v1::BorrowingRecord* message) {
  SetTime(record.own_created_at_us, message->mutable_own_create_time());
  SetTime(record.lender_created_at_us, message->mutable_lender_create_time());
  for (const core::BorrowedHyperparameter& change : record.changes) {
    v1::BorrowedHyperparameter* const added = message->add_changes();
    added->set_key(change.key);
    added->set_own_json(change.own_json);
    added->set_json_value(change.json_value);
    added->set_standing(change.standing);
  }
}

void SetConvergence(const core::Convergence& convergence, v1::ReferenceConvergence* message) {
  message->set_error(convergence.error);
  if (!convergence.error.empty()) return;
  message->set_is_passed(convergence.is_passed);
  message->set_verdict(convergence.verdict);
  message->set_message(convergence.message);
  message->set_normalization(convergence.normalization);
  if (convergence.mean_epochs) message->set_mean_epochs(*convergence.mean_epochs);
  if (convergence.min_epochs) message->set_min_epochs(*convergence.min_epochs);
  if (convergence.p_value) message->set_p_value(*convergence.p_value);
  if (convergence.normalized_minutes)
    message->set_normalized_score_minutes(*convergence.normalized_minutes);
}

absl::StatusOr<core::Borrowing> ReadBorrowing(const v1::HyperparameterBorrowing& message) {
  const auto read = [](const char* field, const std::string& name) {
    absl::StatusOr<core::SubmissionId> id = ParseSubmissionName(name);
    if (id.ok()) return id;
    return absl::StatusOr<core::SubmissionId>(
        Annotate(id.status(), absl::StrCat("spec.borrowing.", field)));
  };
  core::Borrowing borrowing;
  ASSIGN_OR_RETURN(borrowing.own, read("own_entry", message.own_entry()));
  ASSIGN_OR_RETURN(borrowing.lender, read("lender_entry", message.lender_entry()));
  return borrowing;
}

}  // namespace

v1::TrainerWorkload ToProto(const core::TrainerWorkload& trainer) {
  v1::TrainerWorkload message;
  message.set_backend(trainer.backend);
  return message;
}

v1::SubmissionSpec ToProto(const core::SubmissionSpec& spec) {
  v1::SubmissionSpec message;
  message.set_organization(spec.organization);
  message.set_system(spec.system);
  message.set_benchmark(spec.benchmark);
  message.set_division(spec.division);
  message.set_round(spec.round);
  message.set_dataset(spec.dataset);
  message.set_node_count(spec.node_count);
  message.set_ranks_per_node(spec.ranks_per_node);
  message.set_run_count(spec.run_count);
  for (const core::Hyperparameter& parameter : spec.hyperparameters) {
    v1::Hyperparameter* const added = message.add_hyperparameters();
    added->set_key(parameter.key);
    added->set_json_value(parameter.json_value);
  }
  *message.mutable_trainer() = ToProto(std::get<core::TrainerWorkload>(spec.workload));
  message.set_epoch_count_max(spec.epoch_count_max);
  message.set_status(spec.status);
  message.mutable_worker_labels()->insert(spec.worker_labels.begin(), spec.worker_labels.end());
  message.set_replacement_count_max(spec.replacement_count_max);
  message.set_staging(spec.staging);
  if (spec.borrowing) {
    message.mutable_borrowing()->set_own_entry(NameOf(spec.borrowing->own));
    message.mutable_borrowing()->set_lender_entry(NameOf(spec.borrowing->lender));
  }
  message.mutable_run_timeout()->set_seconds(spec.run_timeout_ms / 1000);
  message.mutable_run_timeout()->set_nanos(
      static_cast<int32_t>(spec.run_timeout_ms % 1000 * 1'000'000));
  return message;
}

v1::Submission ToProto(const core::Submission& submission) {
  v1::Submission message;
  message.set_name(NameOf(submission.id));
  *message.mutable_spec() = ToProto(submission.spec);
  message.set_state(ValueOf(submission.state));
  message.set_state_reason(submission.state_reason);
  message.set_submitter(submission.submitter);
  if (submission.created_at_us != 0)
    SetTime(submission.created_at_us, message.mutable_create_time());
  if (submission.ended_at_us != 0) SetTime(submission.ended_at_us, message.mutable_end_time());
  if (submission.score_minutes) message.set_score_minutes(*submission.score_minutes);
  message.set_rules_digest(submission.rules.digest);
  message.set_is_mlperf_result(submission.rules.is_mlperf_result);
  message.set_is_imported(submission.is_imported);
  for (const core::RunId run : submission.runs)
    message.add_runs(NameOf(run));
  message.set_scaling(submission.scaling);
  for (const core::Finding& finding : submission.findings)
    *message.add_findings() = FindingToProto(finding);
  message.set_source_path(submission.source_path);
  message.set_required_run_count(submission.rules.required_run_count);
  for (const core::Note& note : submission.notes) {
    v1::Note* const added = message.add_notes();
    added->set_author(note.author);
    added->set_organization(note.organization);
    SetTime(note.at_us, added->mutable_create_time());
    added->set_text(note.text);
  }
  if (submission.borrowing) SetBorrowing(*submission.borrowing, message.mutable_borrowing());
  if (submission.convergence) SetConvergence(*submission.convergence, message.mutable_reference());
  if (submission.throughput) {
    const core::Throughput& from = *submission.throughput;
    v1::Throughput* to = message.mutable_throughput();
    to->set_model_count(from.model_count);
    to->set_pruned_count(from.pruned_count);
    to->set_instance_scale(from.instance_scale);
    to->set_time_to_all_minutes(from.time_to_all_minutes);
    to->set_models_per_minute(from.model_count / from.time_to_all_minutes);
  }
  return message;
}

absl::StatusOr<core::SubmissionSpec> FromProto(const v1::SubmissionSpec& spec) {
  // A newer client's workload must not be taken for none.
  if (!spec.GetReflection()->GetUnknownFields(spec).empty())
    return absl::InvalidArgumentError(
        "spec has fields that this coordinator does not know: use an `assay` of its version");
  core::SubmissionSpec value;
  value.organization = spec.organization();
  value.system = spec.system();
  value.benchmark = spec.benchmark();
  value.division = spec.division();
  value.round = spec.round();
  value.dataset = std::string(absl::StripPrefix(spec.dataset(), "datasets/"));
  value.node_count = spec.node_count();
  value.ranks_per_node = spec.ranks_per_node();
  value.run_count = spec.run_count();
  for (const v1::Hyperparameter& parameter : spec.hyperparameters())
    value.hyperparameters.push_back({parameter.key(), parameter.json_value()});
  value.workload = core::TrainerWorkload{.backend = spec.has_trainer() ? spec.trainer().backend()
                                                                       : spec.backend()};
  value.epoch_count_max = spec.epoch_count_max();
  value.status = spec.status();
  value.worker_labels.insert(spec.worker_labels().begin(), spec.worker_labels().end());
  value.replacement_count_max = spec.replacement_count_max();
  value.staging = spec.staging();
  if (spec.has_borrowing()) {
    ASSIGN_OR_RETURN(value.borrowing, ReadBorrowing(spec.borrowing()));
  }
  value.run_timeout_ms = ToMilliseconds(spec.run_timeout());
  return value;
}

}  // namespace assay::api
