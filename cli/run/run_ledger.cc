#include "cli/run/run_ledger.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "common/client/entry_score.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/status.h"

namespace assay::cli {
namespace {

std::string AttemptsText(const client::EntryScore& score) {
  return absl::StrCat(score.attempts,
                      score.attempts == 1 ? " attempt: " : " attempts: ", score.succeeded,
                      " judged, ", score.failed, " failed, ", score.cancelled, " cancelled, ",
                      score.remaining, " to end");
}

absl::StatusOr<ExitStatus> RunRunLedger(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, client::AllRunsOf(*client, entry.name()));
  const client::EntryScore score = client::ScoreOfEntry(entry, runs);
  ListView view{.schema = "assay.attempt/v1",
                .columns = {{"RUN", "id"},
                            {"NO", "number", Format::kNumber},
                            {"STATE", "state", Format::kState},
                            {"OUTCOME", "outcome"},
                            {"TIME", "seconds", Format::kSeconds},
                            {"STARTED", "started", Format::kTime, 2},
                            {"ENDED", "ended", Format::kTime, 3},
                            {"NODES", "nodes", Format::kText, 4},
                            {"REASON", "state_reason", Format::kText, 1}},
                .empty_text = "no attempts"};
  for (size_t i = 0; i < runs.size(); ++i) {
    Json run = client::RunJson(runs[i]);
    Json item = Json::object();
    for (const char* field : {"id", "entry", "number", "state", "state_reason", "seconds",
                              "created", "started", "ended", "nodes", "seed", "exit_code"})
      if (run.contains(field)) item[field] = std::move(run[field]);
    item["outcome"] = score.parts[i];
    view.items.push_back(std::move(item));
  }
  RETURN_IF_ERROR(context->printer().List(view));
  context->Note(AttemptsText(score));
  return ExitStatus::kDone;
}

}  // namespace

Command RunLedgerCommand() {
  return {.path = "run ledger",
          .summary = "every attempt of an entry, with what became of it",
          .description =
              "In the order in which they were queued: those that count, those that the score "
              "drops, and those that failed, were cancelled or took the place of another, with "
              "when, where and why. Nothing is ever taken out of it: a run never restarts, and "
              "one that failed stays.",
          .positionals = {{.name = "ID",
                           .help = "e-42, s-42 or @last",
                           .is_required = false,
                           .completes = Completes::kEntry}},
          .examples = {{"assay run ledger e-42", ""},
                       {"assay run ledger s-42 -o csv", "for a spreadsheet"}},
          .run = RunRunLedger};
}

}  // namespace assay::cli
