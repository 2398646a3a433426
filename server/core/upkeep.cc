#include "server/core/upkeep.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/decide.h"

namespace assay::core {
namespace {

absl::Status CheckPruned(const Context& context, const PruneArtifacts& command) {
  const int64_t number = command.submission.number;
  if (number < 1 || number > context.state.last_submission)
    return absl::InvalidArgumentError(absl::StrCat("there is no submission ", number));
  const auto it = context.state.submissions.find(command.submission);
  if (it != context.state.submissions.end() && !IsTerminal(it->second.state))
    return absl::FailedPreconditionError(
        absl::StrCat(command.submission.ToString(), " has not ended: nothing of it is removed"));
  if (command.artifacts.empty() || command.artifacts.size() > kPrunedArtifactCountMax)
    return absl::InvalidArgumentError(absl::StrCat("artifacts: has ", command.artifacts.size(),
                                                   ", give 1 to ", kPrunedArtifactCountMax));
  for (const PrunedArtifact& pruned : command.artifacts)
    if (PrunableKind(pruned.artifact.file_name).empty())
      return absl::InvalidArgumentError(absl::StrCat(
          pruned.artifact.file_name, " is evidence, which is kept for ever: it is not removed"));
  return absl::OkStatus();
}

}  // namespace

absl::string_view PrunableKind(absl::string_view file_name) {
  if (absl::StartsWith(file_name, "telemetry_")) return "telemetry";
  if (file_name == "progress.jsonl") return "progress";
  return "";
}

absl::StatusOr<Decision> Decide(const Context&, const RecordBackup& command) {
  return Decision{.events = {StoreBackedUp{.directory = command.directory,
                                           .event_seq = command.event_seq,
                                           .artifact_count = command.artifact_count,
                                           .fault_count = command.fault_count}},
                  .reply = Done{}};
}

absl::StatusOr<Decision> Decide(const Context& context, const PruneArtifacts& command) {
  RETURN_IF_ERROR(CheckPruned(context, command));
  return Decision{.events = {ArtifactsPruned{.submission = command.submission,
                                             .policy = command.policy,
                                             .artifacts = command.artifacts}},
                  .reply = Done{}};
}

absl::StatusOr<Decision> Decide(const Context&, const RecordRefusal& command) {
  const RefusedCalls& calls = command.calls;
  for (const std::string* const text :
       {&calls.principal, &calls.peer, &calls.method, &calls.reason}) {
    if (text->size() > kRefusedTextBytesMax)
      return absl::InvalidArgumentError(
          absl::StrCat("a text of ", text->size(), " bytes, more than ", kRefusedTextBytesMax));
  }
  if (calls.count < 1)
    return absl::InvalidArgumentError(absl::StrCat("count is ", calls.count, ", give at least 1"));
  return Decision{.events = {CallsRefused{calls}}, .reply = Done{}};
}

}  // namespace assay::core
