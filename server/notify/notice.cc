#include "server/notify/notice.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

#include "common/printable.h"
#include "common/status.h"
#include "server/core/event.h"
#include "server/store/codec.h"

namespace assay::notify {
namespace {

using OrderedJson = nlohmann::ordered_json;

const char* const kSubmitted = "entry.submitted";
const char* const kStarted = "entry.started";
const char* const kEnded = "entry.ended";
const char* const kPublished = "entry.published";
const char* const kWithdrawn = "entry.withdrawn";
const char* const kSucceeded = "run.succeeded";
const char* const kFailed = "run.failed";
const char* const kCancelled = "run.cancelled";
const char* const kLost = "node.lost";
const char* const kDrained = "node.drained";
const char* const kBack = "node.back";

// Events of other types are not even decoded: most of a log are.
bool CanTell(absl::string_view type) {
  const absl::string_view types[] = {
      core::SubmissionCreated::kType,   core::SubmissionClosed::kType,
      core::SubmissionPublished::kType, core::SubmissionWithdrawn::kType,
      core::RunStarted::kType,          core::RunJudged::kType,
      core::RunFailed::kType,           core::RunCancelled::kType,
      core::WorkerRegistered::kType,    core::WorkerStateChanged::kType,
      core::WorkerRevoked::kType};
  return std::find(std::begin(types), std::end(types), type) != std::end(types);
}

}  // namespace

// What an event says by itself.
struct NoticeMaker::Draft {
  std::string kind;  // empty: nothing
  std::string state;
  std::string reason;
  std::optional<double> score_minutes;
  std::string node;
  std::string subject;  // whose change it is: e-42, r-7, node w0
  std::string about;    // whose entry that is
  std::string path;     // of the site's page
  OrderedJson entry;
  OrderedJson run;
};

// One overload for each event that CanTell.
class NoticeMaker::Drafter {
 public:
  explicit Drafter(AwayNodes* away) : away_(*away) {}

  Draft operator()(const core::SubmissionCreated&) { return {.kind = kSubmitted, .state = "OPEN"}; }
  Draft operator()(const core::RunStarted&) { return {.kind = kStarted, .state = "RUNNING"}; }
  Draft operator()(const core::SubmissionClosed& e) {
    return {.kind = kEnded,
            .state = std::string(ToString(e.state)),
            .reason = e.reason,
            .score_minutes = e.score_minutes};
  }
  Draft operator()(const core::SubmissionPublished&) { return {.kind = kPublished}; }
  Draft operator()(const core::SubmissionWithdrawn& e) {
    return {.kind = kWithdrawn, .reason = e.reason};
  }
  Draft operator()(const core::RunJudged&) { return {.kind = kSucceeded, .state = "SUCCEEDED"}; }
  Draft operator()(const core::RunFailed& e) {
    return {.kind = kFailed, .state = "FAILED", .reason = e.reason};
  }
  Draft operator()(const core::RunCancelled& e) {
    return {.kind = kCancelled, .state = "CANCELLED", .reason = e.reason};
  }
  Draft operator()(const core::WorkerStateChanged& e) {
    switch (e.state) {
      case core::WorkerState::kLost:
        return Leave(e.worker, kLost, ToString(e.state), e.reason);
      case core::WorkerState::kDraining:
        return Leave(e.worker, kDrained, ToString(e.state), e.reason);
      case core::WorkerState::kAlive:
        return Return(e.worker);
      case core::WorkerState::kGone:
        away_.erase(e.worker);  // it was told to sign off, or nobody waits for it any more
        return {};
      case core::WorkerState::kSuspect:
        return {};
    }
    return {};
  }
  Draft operator()(const core::WorkerRegistered& e) { return Return(e.worker); }
  Draft operator()(const core::WorkerRevoked& e) {
    away_.erase(e.worker);
    return {};
  }
  template <typename Event>
  Draft operator()(const Event&) {
    return {};
  }

 private:
  Draft Leave(const std::string& node, const char* kind, absl::string_view state,
              const std::string& reason) {
    std::string& told = away_[node];
    if (std::exchange(told, kind) == kind) return {};
    return OfNode(kind, state, reason, node);
  }
  Draft Return(const std::string& node) {
    if (away_.erase(node) == 0) return {};
    return OfNode(kBack, "ALIVE", "", node);
  }
  static Draft OfNode(const char* kind, absl::string_view state, const std::string& reason,
                      const std::string& node) {
    return {.kind = kind,
            .state = std::string(state),
            .reason = reason,
            .node = node,
            .subject = absl::StrCat("node ", node),
            .path = "/fleet"};
  }

  AwayNodes& away_;
};

std::vector<std::string> NoticeKinds() {
  return {kSubmitted, kStarted,   kEnded, kPublished, kWithdrawn, kSucceeded,
          kFailed,    kCancelled, kLost,  kDrained,   kBack};
}

bool IsKindOf(absl::string_view pattern, absl::string_view kind) {
  if (absl::ConsumeSuffix(&pattern, ".*"))
    return absl::ConsumePrefix(&kind, pattern) && absl::StartsWith(kind, ".");
  return pattern == kind;
}

NoticeMaker::NoticeMaker(std::function<bool(absl::string_view)> is_wanted, std::string web_url,
                         store::Reader* reader)
    : is_wanted_(std::move(is_wanted)),
      web_url_(absl::StripSuffix(web_url, "/")),
      reader_(*reader) {}

absl::StatusOr<bool> NoticeMaker::IsFirstRun(const core::EventRow& row) {
  ASSIGN_OR_RETURN(const std::vector<core::Run> runs, reader_.RunsOf(row.submission));
  return std::none_of(runs.begin(), runs.end(), [&row](const core::Run& run) {
    if (run.started_at_us == 0 || run.id == row.run) return false;
    return run.started_at_us < row.at_us || (run.started_at_us == row.at_us && run.id < row.run);
  });
}

absl::Status NoticeMaker::AddEntry(const core::EventRow& row, Draft* draft) {
  ASSIGN_OR_RETURN(const core::Submission entry, reader_.GetSubmission(row.submission));
  const std::string id = entry.id.ToString();
  draft->entry = {{"id", id},
                  {"organization", entry.spec.organization},
                  {"system", entry.spec.system},
                  {"benchmark", entry.spec.benchmark},
                  {"division", entry.spec.division},
                  {"round", entry.spec.round},
                  {"submitter", entry.submitter}};
  draft->subject = id;
  draft->about = absl::StrCat(entry.spec.organization, ", ", entry.spec.system, ", ",
                              entry.spec.benchmark, " ", entry.spec.division);
  draft->path = absl::StrCat("/entries/", id);
  if (draft->state.empty()) draft->state = std::string(ToString(entry.state));
  return absl::OkStatus();
}

absl::Status NoticeMaker::AddRun(const core::EventRow& row, Draft* draft) {
  ASSIGN_OR_RETURN(const core::Run run, reader_.GetRun(row.run));
  OrderedJson nodes = OrderedJson::array();
  for (const core::RunNode& node : run.nodes)
    nodes.push_back(node.worker);
  draft->run = {{"id", run.id.ToString()}, {"number", run.number}, {"nodes", std::move(nodes)}};
  if (draft->kind == kStarted) return absl::OkStatus();  // that of the entry
  draft->subject = run.id.ToString();
  draft->path = absl::StrCat("/runs/", draft->subject);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Notice>> NoticeMaker::Make(const core::EventRow& row,
                                                        AwayNodes* away) {
  if (!CanTell(row.type)) return std::nullopt;
  ASSIGN_OR_RETURN(const core::Event event,
                   store::DecodeEvent(row.type, row.version, row.body_json));
  Draft draft = std::visit(Drafter(away), event);
  if (draft.kind.empty() || !is_wanted_(draft.kind)) return std::nullopt;
  if (draft.kind == kStarted) {
    ASSIGN_OR_RETURN(const bool is_first, IsFirstRun(row));
    if (!is_first) return std::nullopt;
  }
  if (draft.node.empty()) RETURN_IF_ERROR(AddEntry(row, &draft));
  if (!row.run.is_none()) RETURN_IF_ERROR(AddRun(row, &draft));
  return Notice{
      .kind = draft.kind, .seq = row.seq, .at_us = row.at_us, .document = DocumentOf(row, draft)};
}

std::string NoticeMaker::DocumentOf(const core::EventRow& row, const Draft& draft) const {
  OrderedJson document = {
      {"schema", "assay.notice/v1"},
      {"kind", draft.kind},
      {"event", row.seq},
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixMicros(row.at_us),
                                absl::UTCTimeZone())},
      {"principal", row.principal},
      {"state", draft.state}};
  if (!draft.reason.empty()) document["reason"] = draft.reason;
  if (draft.score_minutes.has_value()) document["score_minutes"] = *draft.score_minutes;
  if (!draft.entry.is_null()) document["entry"] = draft.entry;
  if (!draft.run.is_null()) document["run"] = draft.run;
  if (!draft.node.empty()) document["node"] = draft.node;
  std::string text = absl::StrCat(draft.subject, " ", draft.kind.substr(draft.kind.find('.') + 1));
  if (draft.kind == kEnded) absl::StrAppend(&text, " ", draft.state);
  if (draft.score_minutes.has_value())
    absl::StrAppend(&text, absl::StrFormat(" with %.3f minutes", *draft.score_minutes));
  if (!draft.about.empty()) absl::StrAppend(&text, " (", draft.about, ")");
  document["text"] = Printable(text);  // one line: it becomes the subject of a mail
  if (!web_url_.empty()) document["url"] = absl::StrCat(web_url_, draft.path);
  return document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace assay::notify
