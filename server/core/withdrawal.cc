#include "server/core/withdrawal.h"

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/decide.h"

namespace assay::core {

absl::StatusOr<Decision> Decide(const Context& context, const WithdrawSubmission& command) {
  const SubmissionId id = command.submission;
  ASSIGN_OR_RETURN(const Submission* const submission, FindSubmission(context.state, id));
  if (submission->withdrawn_at_us > 0)
    return Decision{.reply = SubmissionReply{.id = id, .is_repeated = true}};
  if (submission->is_imported)
    return absl::FailedPreconditionError(absl::StrCat(
        "submission ", id.ToString(), " is imported: published history is not withdrawn here"));
  if (submission->published_at_us > 0 && submission->published_at_us <= context.now_us)
    return absl::FailedPreconditionError(
        absl::StrCat("submission ", id.ToString(),
                     " is published: results are withdrawn before that, and after it only the "
                     "committee removes them"));
  std::string reason = absl::StrCat("withdrawn by ", context.principal);
  if (!command.reason.empty())
    absl::StrAppend(&reason, ": ", absl::string_view(command.reason).substr(0, kTextBytesMax));
  Decision decision{.reply = SubmissionReply{.id = id}};
  if (!IsTerminal(submission->state))
    decision.events = Close(context.state, *submission, SubmissionState::kCancelled, reason);
  decision.events.push_back(SubmissionWithdrawn{.submission = id, .reason = reason});
  return decision;
}

void Withdraw(const SubmissionWithdrawn& event, int64_t at_us, Submission* submission) {
  submission->withdrawn_at_us = at_us;
  submission->withdraw_reason = event.reason;
  submission->published_at_us = 0;  // a time that has not come
}

}  // namespace assay::core
