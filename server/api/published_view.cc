#include "server/api/published_view.h"

#include <algorithm>

#include "common/foreign_file.h"
#include "server/api/convert.h"
#include "server/core/event.h"

namespace assay::api {

v1::Submission ToProto(const core::Submission& submission, core::Sight sight) {
  v1::Submission message = ToProto(submission);
  if (sight == core::Sight::kWhole) return message;
  message.clear_submitter();
  message.clear_notes();
  message.clear_checked_nodes();
  message.clear_preflight_error();
  v1::SubmissionSpec* const spec = message.mutable_spec();
  spec->clear_worker_labels();
  spec->clear_fleet();
  if (spec->has_command()) spec->mutable_command()->clear_env();  // may hold what is secret
  return message;
}

v1::Run ToProto(const core::Run& run, core::Sight sight, auth::Role role) {
  v1::Run message = ToProto(run);
  const auto is_hidden = [sight, role](const v1::ArtifactRef& file) {
    return !core::IsShownFile(sight, file.file_name()) ||
           (role != auth::Role::kOperator && IsForOperators(file.file_name()));
  };
  for (auto* const files : {message.mutable_artifacts(), message.mutable_late_artifacts()})
    files->erase(std::remove_if(files->begin(), files->end(), is_hidden), files->end());
  if (sight == core::Sight::kWhole) return message;
  message.clear_late_artifacts();
  message.clear_state_reason();  // names nodes
  message.clear_workers();
  message.clear_node_names();
  message.clear_cached_workers();
  message.clear_allocation();
  return message;
}

std::optional<v1::Event> ToProtoIfSeen(const core::EventRow& row) {
  v1::Event message = ToProto(row);
  if (row.sight == core::Sight::kWhole) return message;
  if (row.type == core::SubmissionNoted::kType) return std::nullopt;
  message.clear_principal();
  message.set_body_json("{}");
  return message;
}

std::optional<v1::RunEvent> ToProtoIfSeen(const core::RunEvent& event, core::RunId run,
                                          core::Sight sight) {
  const bool is_of_log =
      event.kind == core::RunEventKind::kLogLine || event.kind == core::RunEventKind::kFinding;
  if (sight != core::Sight::kWhole && !is_of_log) return std::nullopt;
  return ToProto(event, run);
}

}  // namespace assay::api
