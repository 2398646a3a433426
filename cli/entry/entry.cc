#include "cli/entry/entry.h"

#include <iterator>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "cli/command/context.h"
#include "cli/command/filter_terms.h"
#include "cli/rules/rule_sets.h"
#include "cli/terminal/resource_columns.h"
#include "common/client/energy.h"
#include "common/client/entry_score.h"
#include "common/client/history.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/secret.h"
#include "common/status.h"

namespace assay::cli {
namespace {

void SetOrganization(v1::ListSubmissionsRequest* request, const std::string& value) {
  request->set_organization(value);
}
void SetSystem(v1::ListSubmissionsRequest* request, const std::string& value) {
  request->set_system(value);
}
void SetBenchmark(v1::ListSubmissionsRequest* request, const std::string& value) {
  request->set_benchmark(value);
}
void SetDivision(v1::ListSubmissionsRequest* request, const std::string& value) {
  request->set_division(value);
}
void SetRound(v1::ListSubmissionsRequest* request, const std::string& value) {
  request->set_round(CanonicalRound(value));
}
void SetState(v1::ListSubmissionsRequest* request, const std::string& value) {
  request->set_state(absl::AsciiStrToUpper(value));
}

// A filter by name, for the options of `entry list`.
struct NamedFilter {
  const char* name;
  const char* value;
  const char* help;
  void (*set)(v1::ListSubmissionsRequest*, const std::string&);
  Completes completes = Completes::kNothing;
};

const std::vector<NamedFilter>& Filters() {
  static const auto* const kFilters = new std::vector<NamedFilter>{
      {"org", "ORG", "entries of this organisation only", SetOrganization},
      {"system", "SYSTEM", "entries on this system only", SetSystem},
      {"benchmark", "BENCHMARK", "cosmoflow, deepcam", SetBenchmark, Completes::kBenchmark},
      {"division", "DIVISION", "closed or open", SetDivision, Completes::kDivision},
      {"round", "ROUND", "entries of this round only", SetRound, Completes::kRound},
      {"state", "STATE", "open, running, checking, valid, invalid, cancelled", SetState,
       Completes::kEntryState}};
  return *kFilters;
}

absl::StatusOr<ExitStatus> RunEntryList(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const int64_t limit, ListLimit(*context, arguments));
  if (!arguments.Has("FILTER") && !arguments.Has("since")) {
    ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries,
                     client::ListEntries(*client, RequestFrom(arguments), limit));
    if (entries.empty() && arguments.Has("round"))
      RETURN_IF_ERROR(client::CheckRounds(*client, {CanonicalRound(arguments.Get("round"))}));
    return PrintEntries(context, entries, limit);
  }
  ASSIGN_OR_RETURN(const std::string filter, WithFilterOptions(arguments, HistoryKind::kEntry,
                                                               FilterOf(arguments.All("FILTER"))));
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries, FindEntries(*client, filter, limit));
  return PrintEntries(context, entries, limit);
}

absl::StatusOr<ExitStatus> RunEntryShow(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, client::AllRunsOf(*client, entry.name()));
  ShowView view{
      .schema = "assay.entry/v1",
      .value = client::EntryJson(entry),
      .fields = EntryFields(),
      .sections = {{"Borrowed hyperparameters", "borrowed_values", BorrowedColumns()},
                   {"Runs", "run_details", RunColumns()},
                   {"Findings", "findings", FindingColumns()},
                   {"Notes",
                    "notes",
                    {{"TIME", "time", Format::kTime}, {"AUTHOR", "author"}, {"TEXT", "text"}}}}};
  view.value["run_details"] = Json::array();
  for (const v1::Run& run : runs)
    view.value["run_details"].push_back(client::RunJson(run));
  const client::EntryScore score = client::ScoreOfEntry(entry, runs);
  const std::optional<client::Energy>& energy = score.energy;
  if (energy) client::AddEnergy(*energy, &view.value);
  ShowEnergy(context->printer().IsStructured(), energy ? client::EnergyText(*energy) : "", &view);
  if (score.touch) client::AddTouchEvidence(*score.touch, &view.value);
  RETURN_IF_ERROR(context->printer().Show(view));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunEntryNote(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::NoteSubmissionRequest request;
  request.set_request_id(MakeUuid());
  request.set_text(arguments.Get("TEXT"));
  ASSIGN_OR_RETURN(*request.mutable_name(), client::EntryName(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const v1::Submission entry, client->CallRetrying(request));
  const std::string id = client::ShortId(entry.name());
  RETURN_IF_ERROR(
      ShowChanged(context, entry, absl::StrCat("noted on ", id),
                  absl::StrCat("all who may see the entry read it: assay entry show ", id)));
  return ExitStatus::kDone;
}

absl::StatusOr<ExitStatus> RunEntryWithdraw(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  v1::WithdrawSubmissionRequest request;
  request.set_reason(arguments.Get("reason"));
  ASSIGN_OR_RETURN(*request.mutable_name(), client::EntryName(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const v1::Submission entry, client->CallRetrying(request));
  const std::string id = client::ShortId(entry.name());
  RETURN_IF_ERROR(ShowChanged(
      context, entry, absl::StrCat(id, " is ", entry.withdraw_reason()),
      absl::StrCat("it stays with its runs and logs, and is never published: assay entry show ",
                   id)));
  return ExitStatus::kDone;
}

}  // namespace

absl::StatusOr<ExitStatus> PrintEntries(Context* context,
                                        const std::vector<v1::Submission>& entries, int64_t limit) {
  ListView view{.schema = "assay.entry/v1",
                .columns = EntryColumns(),
                .empty_text = "no entries; 'assay submit FILE' makes one"};
  for (const v1::Submission& entry : entries)
    view.items.push_back(client::EntryJson(entry));
  RETURN_IF_ERROR(context->printer().List(view));
  if (std::ssize(entries) == limit) NoteCut(*context, limit, 0);
  return ExitStatus::kDone;
}

std::vector<Option> FilterOptions() {
  std::vector<Option> options;
  for (const NamedFilter& filter : Filters())
    options.push_back({.name = filter.name,
                       .kind = Option::Kind::kText,
                       .value = filter.value,
                       .help = filter.help,
                       .completes = filter.completes});
  options.push_back(ListLimitOption());
  return options;
}

v1::ListSubmissionsRequest RequestFrom(const Arguments& arguments) {
  v1::ListSubmissionsRequest request;
  for (const NamedFilter& filter : Filters())
    if (arguments.Has(filter.name)) filter.set(&request, arguments.Get(filter.name));
  return request;
}

absl::Status ShowChanged(Context* context, const v1::Submission& entry, const std::string& done,
                         const std::string& next) {
  if (context->printer().IsJson())
    return context->printer().Show({.schema = "assay.entry/v1", .value = client::EntryJson(entry)});
  context->out() << done << "\n";
  context->Note(next);
  return absl::OkStatus();
}

std::vector<Command> EntryCommands() {
  const auto list_options = [] {
    std::vector<Option> options = FilterOptions();
    options.push_back(SinceOption());
    return options;
  };
  return {{.path = "entry list",
           .summary = "list entries, newest first",
           .description = "What a filter may say is told by 'assay help query'.",
           .positionals = {FilterPositional("such as minutes<30 or nodes>=64; nothing: all")},
           .options = list_options(),
           .examples = {{"assay entry list --benchmark cosmoflow --division closed", ""},
                        {"assay entry list -o csv > entries.csv", "for a spreadsheet"}},
           .run = RunEntryList},
          {.path = "entry show",
           .summary = "show an entry with its runs and findings",
           .positionals = {{.name = "ID", .help = "e-42 or @last", .completes = Completes::kEntry}},
           .examples = {{"assay entry show @last", ""},
                        {"assay entry show e-42 --json=state,score_minutes", ""}},
           .run = RunEntryShow},
          {.path = "entry withdraw",
           .summary = "take back an entry: it is never published, and stays as evidence",
           .description =
               "For its organisation, until it is published. One that goes on is ended as by "
               "'cancel'; of one that has ended verdict, runs and logs stay. It cannot be taken "
               "back: submit the file again.",
           .positionals = {{.name = "ID", .help = "e-42 or @last", .completes = Completes::kEntry}},
           .options = {{.name = "reason",
                        .kind = Option::Kind::kText,
                        .value = "TEXT",
                        .help = "why, for the record"}},
           .examples = {{"assay entry withdraw e-42 --reason 'a node was mis-cabled'", ""}},
           .run = RunEntryWithdraw},
          {.path = "entry note",
           .summary = "say something about an entry, open or ended",
           .description = "All who may see the entry read it in 'entry show'. Notes are kept for "
                          "ever, with who wrote them and when.",
           .positionals = {{.name = "ID", .help = "e-42 or @last", .completes = Completes::kEntry},
                           {.name = "TEXT", .help = "what is to be said; at most 4096 bytes"}},
           .examples = {{"assay entry note e-42 'rerun after the switch was replaced'", ""}},
           .run = RunEntryNote}};
}

}  // namespace assay::cli
