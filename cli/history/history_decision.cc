#include "cli/history/history_decision.h"

#include <string>

#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "cli/entry/entry.h"
#include "common/analysis/history_note.h"
#include "common/client/ids.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay::cli {
namespace {

absl::StatusOr<ExitStatus> Decide(Context* context, const Arguments& arguments,
                                  analysis::ChangeDecision::Kind kind) {
  const analysis::ChangeDecision decision = {
      .kind = kind,
      .measure = analysis::MeasureOf(arguments.Get("measure")),
      .reason = arguments.Get("reason")};
  v1::NoteSubmissionRequest request;
  ASSIGN_OR_RETURN(*request.mutable_text(), NoteText(decision));
  request.set_request_id(MakeUuid());
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(*request.mutable_name(), client::EntryName(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const v1::Submission entry, client->CallRetrying(request));
  const std::string id = client::ShortId(entry.name());
  const bool is_mark = kind == analysis::ChangeDecision::Kind::kMark;
  RETURN_IF_ERROR(ShowChanged(
      context, entry, absl::StrCat(is_mark ? "a change is marked at " : "no change at ", id),
      absl::StrCat("see: assay history changes system=\"", entry.spec().system(), "\"")));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunMark(Context* context, const Arguments& arguments) {
  return Decide(context, arguments, analysis::ChangeDecision::Kind::kMark);
}

absl::StatusOr<ExitStatus> RunVeto(Context* context, const Arguments& arguments) {
  return Decide(context, arguments, analysis::ChangeDecision::Kind::kVeto);
}

std::vector<Option> DecisionOptions() {
  return {{.name = "reason",
           .kind = Option::Kind::kText,
           .value = "TEXT",
           .help = "for those who read it years later",
           .is_required = true},
          {.name = "measure",
           .kind = Option::Kind::kChoice,
           .value = "MEASURE",
           .help = "of which it is said",
           .choices = {"epoch_seconds", "epochs", "both"},
           .fallback = "both"}};
}

}  // namespace

std::vector<Command> HistoryDecisionCommands() {
  const std::vector<Positional> what = {{.name = "ID",
                                         .help = "the first entry after the change: e-42",
                                         .completes = Completes::kEntry}};
  return {
      {.path = "history mark",
       .summary = "say that the level of a series changes at an entry",
       .description = "From it on sets are judged by each other, no longer by those before. It "
                      "is a note of the entry, with author and time; the last one about an entry "
                      "counts.",
       .positionals = what,
       .options = DecisionOptions(),
       .examples = {{"assay history mark e-42 --reason 'new firmware on all nodes'", ""}},
       .run = RunMark},
      {.path = "history veto",
       .summary = "say that there is no change of level at an entry",
       .description = "A change that was found there, or up to two sets beside it, ends no level "
                      "any more; a mark is taken back. It is a note of the entry, with author "
                      "and time; the last one about an entry counts.",
       .positionals = what,
       .options = DecisionOptions(),
       .examples = {{"assay history veto e-42 --reason 'two nodes were down' --measure "
                     "epoch_seconds",
                     ""}},
       .run = RunVeto}};
}

}  // namespace assay::cli
