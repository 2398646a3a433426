// The decision about nodes that a submitter brings.

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/allocate.h"
#include "server/core/decide.h"

namespace assay::core {
namespace {

absl::Status CheckText(const char* field, const std::string& text) {
  if (!text.empty() && text.size() <= kTextBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": give 1 to ", kTextBytesMax, " bytes, not ", text.size()));
}

absl::Status CheckJob(const Context& context, const JoinAllocation& command) {
  RETURN_IF_ERROR(CheckText("job", command.job));
  if (command.hosts.empty() || command.hosts.size() > static_cast<size_t>(kNodeCountMax))
    return absl::InvalidArgumentError(
        absl::StrCat("hosts: give 1 to ", kNodeCountMax, ", not ", command.hosts.size()));
  for (const std::string& host : command.hosts)
    RETURN_IF_ERROR(CheckText("hosts", host));
  if (command.token_sha256s.size() != command.hosts.size())
    return absl::InternalError("there is not one token for each host");
  if (command.deadline_us == 0 ||
      (command.deadline_us > context.now_us && command.deadline_us <= kTimeUsMax))
    return absl::OkStatus();
  return absl::InvalidArgumentError("deadline: the job would have ended already");
}

// Its runs may have the nodes.
absl::Status CheckUse(const Submission& submission, const JoinAllocation& command) {
  if (IsTerminal(submission.state))
    return absl::FailedPreconditionError(
        absl::StrCat(submission.id.ToString(), " has ended: it needs no nodes"));
  const int64_t need = NodesAtOnce(submission.spec);
  if (std::ssize(command.hosts) >= need) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      submission.id.ToString(), " needs ", need, " nodes, and job ", command.job, " has ",
      command.hosts.size(), ": begin a job of more, or submit an entry that needs fewer"));
}

// What the nodes that are brought make superfluous: what was asked of the launcher for the same
// submission and has not come, and what the same job has joined as before.
absl::StatusOr<std::vector<Event>> EndOthers(const State& state, const JoinAllocation& command) {
  std::vector<Event> events;
  for (const auto& [id, allocation] : state.allocations) {
    if (allocation.state == AllocationState::kEnded) continue;
    if (allocation.spec.launcher == kSubmitterLauncher && allocation.job == command.job) {
      const bool is_called =
          std::any_of(state.workers.begin(), state.workers.end(),
                      [&id = id](const auto& entry) { return entry.second.allocation == id; });
      if (is_called)
        return absl::AlreadyExistsError(absl::StrCat("job ", command.job, " has joined as ",
                                                     id.ToString(), ", and its nodes have called"));
      std::vector<Event> end = EndAllocation(state, allocation, "its job has joined again");
      std::move(end.begin(), end.end(), std::back_inserter(events));
    } else if (allocation.spec.submission == command.submission &&
               allocation.state == AllocationState::kRequested) {
      events.push_back(AllocationReleasing{
          .allocation = id, .reason = absl::StrCat("the submitter brings job ", command.job)});
    }
  }
  return events;
}

Token MakeToken(const Context& context, const JoinAllocation& command, size_t i,
                const std::string& worker) {
  Token token;
  token.id = TokenId{context.state.last_token + 1 + static_cast<int64_t>(i)};
  token.kind = TokenKind::kEnrol;
  token.role = "worker";
  token.principal = worker;
  token.secret_sha256 = command.token_sha256s[i];
  token.created_at_us = context.now_us;
  token.expires_at_us = command.token_expires_at_us;
  return token;
}

}  // namespace

absl::StatusOr<Decision> Decide(const Context& context, const JoinAllocation& command) {
  const State& state = context.state;
  RETURN_IF_ERROR(CheckJob(context, command));
  const auto it = state.submissions.find(command.submission);
  if (it == state.submissions.end())
    return absl::NotFoundError(absl::StrCat("there is no submission ",
                                            command.submission.ToString(), " that has not ended"));
  const Submission& submission = it->second;
  RETURN_IF_ERROR(CheckUse(submission, command));
  const AllocationId id{state.last_allocation + 1};
  Decision decision{.reply = Allocation{.id = id}};
  ASSIGN_OR_RETURN(decision.events, EndOthers(state, command));
  decision.events.push_back(
      AllocationRequested{.allocation = id,
                          .spec = {.launcher = std::string(kSubmitterLauncher),
                                   .node_count = static_cast<int32_t>(command.hosts.size()),
                                   .submission = submission.id,
                                   .organization = submission.spec.organization},
                          .reason = absl::StrCat("nodes of the submitter's own job ", command.job),
                          .standing = context.standing});
  decision.events.push_back(AllocationSubmitted{.allocation = id, .job = command.job});
  AllocationGranted granted{
      .allocation = id, .deadline_us = command.deadline_us, .hosts = command.hosts};
  for (size_t i = 0; i < command.hosts.size(); ++i) {
    granted.workers.push_back(absl::StrCat(kSubmitterWorkerPrefix, id.number, "-", i));
    decision.events.push_back(
        TokenCreated{.token = MakeToken(context, command, i, granted.workers.back()),
                     .standing = context.standing});
  }
  decision.events.push_back(std::move(granted));
  return decision;
}

}  // namespace assay::core
