#include "server/core/pruning.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/decide.h"

namespace assay::core {

absl::Status CheckPruning(const Submission& submission, const std::vector<RunId>& runs) {
  const std::string name = absl::StrCat("submission ", submission.id.ToString());
  if (submission.is_imported || !IsThroughput(submission.spec))
    return absl::FailedPreconditionError(
        absl::StrCat(name, " is no throughput set of this coordinator: nothing is left out"));
  if (submission.state != SubmissionState::kValid)
    return absl::FailedPreconditionError(absl::StrCat(
        name, " is ", ToString(submission.state), ": only of a valid set good ones are left out"));
  if (submission.withdrawn_at_us > 0)
    return absl::FailedPreconditionError(absl::StrCat(name, " was withdrawn: it has no result"));
  if (!submission.pruned_runs.empty())
    return absl::FailedPreconditionError(
        absl::StrCat(name, " has ", submission.pruned_runs.size(),
                     " instances left out already: that is chosen once"));
  if (runs.empty()) return absl::InvalidArgumentError("runs: name those to be left out");
  std::vector<RunId> sorted = runs;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return absl::InvalidArgumentError(absl::StrCat("runs: ", twice->ToString(), " is named twice"));
  for (const RunId run : runs) {
    if (std::find(submission.runs.begin(), submission.runs.end(), run) == submission.runs.end())
      return absl::InvalidArgumentError(
          absl::StrCat("runs: ", run.ToString(), " is no run of ", name));
  }
  return absl::OkStatus();
}

absl::StatusOr<Decision> Decide(const Context& context, const PruneInstances& command) {
  const State& state = context.state;
  const SubmissionId id = command.submission;
  ASSIGN_OR_RETURN(const Submission* const submission, FindSubmission(state, id));
  if (!command.runs.empty() && submission->pruned_runs == command.runs)
    return Decision{.reply = SubmissionReply{.id = id, .is_repeated = true}};
  RETURN_IF_ERROR(CheckPruning(*submission, command.runs));
  return Decision{.events = {InstancesPruned{.submission = id,
                                             .runs = command.runs,
                                             .throughput = command.throughput,
                                             .convergence = command.convergence,
                                             .reason = command.reason}},
                  .reply = SubmissionReply{.id = id}};
}

}  // namespace assay::core
