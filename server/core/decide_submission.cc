// Decisions about submissions: accepting, cancelling, importing, and the verdicts of the rules.

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/backend_names.h"
#include "common/status.h"
#include "server/core/decide.h"
#include "server/core/judgement.h"
#include "server/core/lease.h"

namespace assay::core {
namespace {

// As many findings as fit into an error that a person will read.
constexpr size_t kFindingsInMessageMax = 5;

std::string ToText(const Finding& finding) {
  return absl::StrCat(finding.rule_id, " ", finding.key, ": expected ", finding.expected,
                      ", found ", finding.found, finding.remedy.empty() ? "" : "; ",
                      finding.remedy);
}

// What is not there yet may come: the same submission can be accepted later.
absl::StatusCode CodeOf(const Finding& finding) {
  if (finding.rule_id == "R-SPC-003") return absl::StatusCode::kNotFound;
  if (finding.rule_id == "R-SPC-004") return absl::StatusCode::kFailedPrecondition;
  return absl::StatusCode::kInvalidArgument;
}

// An error with the first findings that are errors, if there is one: INVALID_ARGUMENT; NOT_FOUND
// for a dataset that is not registered, FAILED_PRECONDITION for one of another benchmark.
absl::Status CheckFindings(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  size_t error_count = 0;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::kError) continue;
    if (error_count == 0) code = CodeOf(finding);
    if (++error_count <= kFindingsInMessageMax) texts.push_back(ToText(finding));
  }
  if (error_count == 0) return absl::OkStatus();
  std::string message = absl::StrJoin(texts, " | ");
  if (error_count > kFindingsInMessageMax)
    absl::StrAppend(&message, " | and ", error_count - kFindingsInMessageMax, " more");
  return absl::Status(code, message);
}

absl::Status CheckSeeds(const CreateSubmission& command) {
  const SubmissionSpec& spec = command.spec;
  const size_t needed =
      static_cast<size_t>(spec.run_count) + static_cast<size_t>(spec.replacement_count_max);
  const std::set<int64_t> distinct(command.seeds.begin(), command.seeds.end());
  if (command.seeds.size() >= needed && distinct.size() == command.seeds.size() &&
      *distinct.begin() > 0)
    return absl::OkStatus();
  return absl::InternalError(absl::StrCat("needs ", needed, " distinct seeds above 0, got ",
                                          distinct.size(), " distinct of ", command.seeds.size()));
}

// An entry is replaced once. The rules have seen what was committed when they were asked; this sees
// what has come since.
absl::Status CheckBorrowing(const State& state, const CreateSubmission& command) {
  const std::optional<Borrowing>& borrowing = command.spec.borrowing;
  if (borrowing.has_value() != command.borrowing.has_value())
    return absl::InternalError("a borrowing and what was found of it come together");
  if (!borrowing.has_value()) return absl::OkStatus();
  if (borrowing->own.number < 1 || borrowing->lender.number < 1)
    return absl::InvalidArgumentError("borrowing: own and lender are entries, numbered from 1");
  const auto borrower = state.borrowings.find(borrowing->own);
  if (borrower == state.borrowings.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("R-BOR-005 own_entry: expected one borrowing for each entry, found ",
                   borrowing->own.ToString(), ", in whose place ", borrower->second.ToString(),
                   " borrows already; only if that is cancelled another can"));
}

absl::Status CheckCreate(const Context& context, const CreateSubmission& command) {
  const State& state = context.state;
  RETURN_IF_ERROR(CheckChoices(command.spec));
  RETURN_IF_ERROR(CheckFindings(command.findings));
  RETURN_IF_ERROR(CheckBorrowing(state, command));
  RETURN_IF_ERROR(CheckFindings(JudgeSpec(state, context.launcher, command.spec)));
  // The round's rules have said so already (R-RUN-001).
  if (command.spec.run_count < command.rules.required_run_count)
    return absl::InvalidArgumentError(
        absl::StrCat("run_count: expected ", command.rules.required_run_count, " to ", kRunCountMax,
                     " in round ", command.spec.round, ", found ", command.spec.run_count));
  RETURN_IF_ERROR(CheckSeeds(command));
  if (state.runs.size() + static_cast<size_t>(command.spec.run_count) > kOpenRunCountMax)
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", state.runs.size(), " open runs already; retry when some ended"));
  return absl::OkStatus();
}

Decision Repeated(SubmissionId id) {
  return Decision{.reply = SubmissionReply{.id = id, .is_repeated = true}};
}

Run ToRun(const ImportSubmission::ImportedRun& imported, int64_t now_us) {
  Run run;
  run.state = RunState::kSucceeded;
  run.created_at_us = now_us;
  run.ended_at_us = now_us;
  run.facts = imported.facts;
  run.artifacts = {imported.log};
  return run;
}

}  // namespace

absl::StatusOr<const Submission*> FindSubmission(const State& state, SubmissionId id) {
  if (id.number < 1 || id.number > state.last_submission)
    return absl::NotFoundError(absl::StrCat("there is no submission ", id.ToString()));
  const auto it = state.submissions.find(id);
  if (it != state.submissions.end()) return &it->second;
  return absl::UnavailableError(
      absl::StrCat("submission ", id.ToString(), " could not be read from the store; retry"));
}

absl::StatusOr<Decision> Decide(const Context& context, const CreateSubmission& command) {
  const State& state = context.state;
  if (command.request_id.empty())
    return absl::InvalidArgumentError("request_id is missing; choose a new UUID per submission");
  const auto made = state.requests.find({context.standing, context.principal, command.request_id});
  if (made != state.requests.end()) {
    const absl::StatusOr<SubmissionId> id = ParseSubmissionId(made->second.made);
    if (!id.ok())
      return absl::AlreadyExistsError(
          absl::StrCat("request_id ", command.request_id, " has made ", made->second.made));
    return Repeated(*id);
  }
  RETURN_IF_ERROR(CheckCreate(context, command));
  const SubmissionId id{state.last_submission + 1};
  Decision decision;
  decision.events.push_back(SubmissionCreated{.submission = id,
                                              .request_id = command.request_id,
                                              .spec = command.spec,
                                              .rules = command.rules,
                                              .findings = command.findings,
                                              .seeds = command.seeds,
                                              .first_run = RunId{state.last_run + 1},
                                              .borrowing = command.borrowing,
                                              .standing = context.standing});
  decision.reply = SubmissionReply{.id = id};
  return decision;
}

absl::Status CheckChoices(const SubmissionSpec& spec) {
  struct Choice {
    absl::string_view field;
    absl::string_view chosen;
    std::vector<absl::string_view> known;
  };
  const Choice choices[] = {
      {"division", spec.division, {"closed", "open"}},
      {"backend", BackendOf(spec.workload), {std::begin(kBackendNames), std::end(kBackendNames)}},
      {"status", spec.status, {"onprem", "cloud", "preview", "research"}},
      {"staging", spec.staging, {"node", "none"}},  // each node copies its part first, or not
      {"metric", spec.metric, {kTimeToSolution, kThroughput}},
  };
  for (const auto& [field, chosen, known] : choices) {
    if (chosen.empty() || std::find(known.begin(), known.end(), chosen) != known.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(field, " is \"",
                                                   absl::CHexEscape(chosen.substr(0, 80)),
                                                   "\": choose ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

std::vector<Event> Close(const State& state, const Submission& submission, SubmissionState target,
                         const std::string& reason) {
  std::vector<Event> events;
  for (const RunId id : submission.runs) {
    if (!IsTerminal(state.runs.at(id).state))
      events.push_back(RunCancelled{.run = id, .reason = reason});
  }
  events.push_back(
      SubmissionClosed{.submission = submission.id, .state = target, .reason = reason});
  return events;
}

absl::StatusOr<Decision> Decide(const Context& context, const CancelSubmission& command) {
  const State& state = context.state;
  const SubmissionId id = command.submission;
  ASSIGN_OR_RETURN(const Submission* const submission, FindSubmission(state, id));
  if (IsTerminal(submission->state))
    return absl::FailedPreconditionError(absl::StrCat("submission ", id.ToString(), " has ended ",
                                                      ToString(submission->state),
                                                      "; only one that is open can be cancelled"));
  std::string reason = absl::StrCat("cancelled by ", context.principal);
  if (!command.reason.empty())
    absl::StrAppend(&reason, ": ", absl::string_view(command.reason).substr(0, kTextBytesMax));
  return Decision{.events = Close(state, *submission, SubmissionState::kCancelled, reason),
                  .reply = SubmissionReply{.id = id}};
}

absl::StatusOr<Decision> Decide(const Context& context, const NoteSubmission& command) {
  const State& state = context.state;
  const SubmissionId id = command.submission;
  ASSIGN_OR_RETURN(const Submission* const submission, FindSubmission(state, id));
  if (!command.request_id.empty() &&
      state.requests.contains({context.standing, context.principal, command.request_id}))
    return Repeated(id);
  if (absl::StripAsciiWhitespace(command.text).empty())
    return absl::InvalidArgumentError("a note without text says nothing");
  if (command.text.size() > kTextBytesMax)
    return absl::InvalidArgumentError(
        absl::StrCat("a note has at most ", kTextBytesMax, " bytes, not ", command.text.size()));
  if (submission->notes.size() >= kNoteCountMax)
    return absl::ResourceExhaustedError(
        absl::StrCat("submission ", id.ToString(), " has ", kNoteCountMax, " notes, and no more"));
  return Decision{.events = {SubmissionNoted{.submission = id,
                                             .request_id = command.request_id,
                                             .text = command.text,
                                             .standing = context.standing}},
                  .reply = SubmissionReply{.id = id}};
}

namespace {

absl::Status CheckPublication(const Submission& submission, int64_t at_us, int64_t now_us) {
  const std::string id = submission.id.ToString();
  if (submission.state != SubmissionState::kValid && submission.state != SubmissionState::kInvalid)
    return absl::FailedPreconditionError(
        absl::StrCat("submission ", id, " is ", ToString(submission.state),
                     "; only one that has ended with a verdict can be published"));
  if (submission.withdrawn_at_us > 0)
    return absl::FailedPreconditionError(
        absl::StrCat("submission ", id, " was withdrawn, and is never published"));
  const int64_t before_us = submission.published_at_us;
  const auto shown = [](int64_t us) {
    return absl::FormatTime(absl::RFC3339_sec, absl::FromUnixMicros(us), absl::UTCTimeZone());
  };
  if (before_us > 0 && before_us <= now_us)
    return absl::FailedPreconditionError(absl::StrCat("submission ", id, " is published since ",
                                                      shown(before_us),
                                                      ", which cannot be changed any more"));
  if (!submission.is_imported && at_us < now_us)
    return absl::InvalidArgumentError(
        absl::StrCat("publish_time is ", shown(at_us), ", and nobody could see ", id,
                     " then: leave it out to publish at once, or give a time to come"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Decision> Decide(const Context& context, const PublishSubmission& command) {
  const SubmissionId id = command.submission;
  ASSIGN_OR_RETURN(const Submission* const submission, FindSubmission(context.state, id));
  const int64_t before_us = submission->published_at_us;
  const bool is_published = before_us > 0 && before_us <= context.now_us;
  const bool is_same = command.at_us == 0 ? is_published : command.at_us == before_us;
  if (is_same) return Repeated(id);
  const int64_t at_us = command.at_us == 0 ? context.now_us : command.at_us;
  RETURN_IF_ERROR(CheckPublication(*submission, at_us, context.now_us));
  return Decision{.events = {SubmissionPublished{.submission = id, .published_at_us = at_us}},
                  .reply = SubmissionReply{.id = id}};
}

absl::StatusOr<Decision> Decide(const Context& context, const ImportSubmission& command) {
  const State& state = context.state;
  if (command.spec.round.empty() || command.source_path.empty())
    return absl::InvalidArgumentError("an import needs its round and its source_path");
  if (command.spec.borrowing)
    return absl::InvalidArgumentError("an import borrows nothing: its spec is history");
  if (command.runs.size() > static_cast<size_t>(kRunCountMax))
    return absl::InvalidArgumentError(
        absl::StrCat("an import has at most ", kRunCountMax, " runs"));
  const auto made = state.imports.find({command.spec.round, command.source_path});
  if (made != state.imports.end()) return Repeated(made->second);

  SubmissionImported event;
  Submission& submission = event.submission;
  submission.id = SubmissionId{state.last_submission + 1};
  submission.spec = command.spec;
  submission.rules = command.rules;
  const bool is_scored = command.score_minutes.has_value() || command.throughput.has_value();
  submission.state = is_scored ? SubmissionState::kValid : SubmissionState::kInvalid;
  submission.state_reason = command.reason;
  submission.submitter = context.principal;
  submission.created_at_us = context.now_us;
  submission.ended_at_us = context.now_us;
  submission.score_minutes = command.score_minutes;
  submission.throughput = command.throughput;
  submission.convergence = command.convergence;
  submission.is_imported = true;
  submission.scaling = command.scaling;
  submission.findings = command.findings;
  submission.source_path = command.source_path;
  submission.published_at_us = command.published_at_us;
  submission.system_description_json = command.system_description_json;
  for (const ImportSubmission::ImportedRun& imported : command.runs) {
    Run run = ToRun(imported, context.now_us);
    run.number = static_cast<int32_t>(event.runs.size()) + 1;
    run.id = RunId{state.last_run + run.number};
    run.submission = submission.id;
    submission.runs.push_back(run.id);
    submission.measured_at_us = EarlierStart(submission.measured_at_us, run.facts);
    event.runs.push_back(std::move(run));
  }
  Decision decision;
  decision.reply = SubmissionReply{.id = submission.id};
  decision.events.push_back(std::move(event));
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const LogChecked& command) {
  const auto it = context.state.runs.find(command.run);
  Decision decision{.reply = Done{}};
  if (it == context.state.runs.end() || it->second.state != RunState::kUploading) return decision;
  if (command.error.empty()) {
    decision.events.push_back(RunJudged{.run = command.run, .facts = command.facts});
  } else {
    decision.events.push_back(
        RunFailed{.run = command.run, .reason = command.error, .is_replaceable = false});
  }
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const SetScored& command) {
  const auto it = context.state.submissions.find(command.submission);
  Decision decision{.reply = Done{}};
  if (it == context.state.submissions.end() || it->second.state != SubmissionState::kChecking)
    return decision;
  const bool is_valid = command.score_minutes.has_value() || command.throughput.has_value();
  decision.events.push_back(
      SubmissionClosed{.submission = command.submission,
                       .state = is_valid ? SubmissionState::kValid : SubmissionState::kInvalid,
                       .reason = command.reason,
                       .score_minutes = command.score_minutes,
                       .findings = command.findings,
                       .convergence = command.convergence,
                       .throughput = command.throughput});
  return decision;
}

}  // namespace assay::core
