#include "cli/entry/query.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "assay/v1/admin_service.pb.h"

#include "cli/command/context.h"
#include "cli/command/filter_terms.h"
#include "cli/entry/entry.h"
#include "cli/terminal/resource_columns.h"
#include "common/client/history.h"
#include "common/client/resource_json.h"
#include "common/client/saved_views.h"
#include "common/filter.h"
#include "common/history_fields.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kRowsAtTerminal = 1000;

void SetList(const Arguments& arguments, const char* option,
             google::protobuf::RepeatedPtrField<std::string>* list) {
  if (!arguments.Has(option)) return;
  list->Clear();
  const std::string text = arguments.Get(option);
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty()))
    list->Add(std::string(absl::StripAsciiWhitespace(part)));
}

// What the words of the command line ask.
struct QuestionOfWords {
  HistoryKind kind = HistoryKind::kEntry;
  v1::QueryResultsRequest request;
  FilterNode filter;
};

// A saved view, or an empty question of the kind that is asked for.
absl::StatusOr<v1::QueryResultsRequest> BaseOf(Context* context, const Arguments& arguments) {
  v1::QueryResultsRequest question;
  const HistoryKind kind = ParseHistoryKind(arguments.Get("kind")).value_or(HistoryKind::kEntry);
  question.set_kind(client::ProtoOf(kind));
  if (!arguments.Has("view")) return question;
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::View view, client::FindView(*client, arguments.Get("view")));
  if (arguments.Has("kind") && view.kind() != ToString(kind))
    return absl::InvalidArgumentError(absl::StrCat("--kind ", ToString(kind), ": the view '",
                                                   view.name(), "' asks for ", view.kind()));
  return client::QuestionOfView(view);
}

// The words narrow a view's filter, and stand in the place of what else it has.
absl::StatusOr<QuestionOfWords> ReadQuestion(Context* context, const Arguments& arguments) {
  QuestionOfWords question;
  ASSIGN_OR_RETURN(question.request, BaseOf(context, arguments));
  v1::QueryResultsRequest& request = question.request;
  for (const HistoryKind kind : kHistoryKinds)
    if (client::ProtoOf(kind) == request.kind()) question.kind = kind;
  const std::string base = request.filter();
  ASSIGN_OR_RETURN(*request.mutable_filter(),
                   WithFilterOptions(arguments, question.kind, FilterOf(arguments.All("FILTER"))));
  // Here too, so that what is misspelt is told without a coordinator.
  ASSIGN_OR_RETURN(question.filter, ReadFilter(question.kind, request.filter()));
  if (!base.empty()) {
    request.set_filter(
        request.filter().empty() ? base : absl::StrCat("(", base, ") (", request.filter(), ")"));
    ASSIGN_OR_RETURN(question.filter, ReadFilter(question.kind, request.filter()));
  }
  if (arguments.Has("order-by")) request.set_order_by(arguments.Get("order-by"));
  SetList(arguments, "columns", request.mutable_columns());
  SetList(arguments, "group-by", request.mutable_group_by());
  SetList(arguments, "aggregate", request.mutable_aggregates());
  return question;
}

// The address of the question on the coordinator's site.
absl::Status PrintUrl(Context* context, const v1::QueryResultsRequest& question) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::ServerInfo info, client->CallRetrying(v1::GetServerInfoRequest()));
  if (info.web_url().empty())
    return absl::FailedPreconditionError(
        "the coordinator does not say where its site is: let its operator set web_url in "
        "assayd.textproto");
  const std::string url = absl::StrCat(absl::StripSuffix(info.web_url(), "/"),
                                       client::QueryPath(client::ViewOfQuestion(question)));
  if (context->printer().IsJson())
    return context->printer().Show({.schema = "assay.query_url/v1", .value = {{"url", url}}});
  context->out() << url << "\n";
  return absl::OkStatus();
}

// Under the name that is asked for, once it is known to be a question.
absl::Status SaveIfAsked(Context* context, const client::Client& client, const Arguments& arguments,
                         const v1::QueryResultsRequest& question) {
  if (!arguments.Has("save")) return absl::OkStatus();
  v1::SaveViewRequest request;
  *request.mutable_view() = client::ViewOfQuestion(question);
  request.mutable_view()->set_name(arguments.Get("save"));
  request.mutable_view()->set_is_shared(arguments.Has("shared"));
  ASSIGN_OR_RETURN(const v1::View view, client.CallRetrying(request));
  context->Note(absl::StrCat("saved; 'assay query --view ", view.name(), "' asks it again"));
  return absl::OkStatus();
}

Format FormatOf(const v1::QueryColumn& column) {
  if (column.name() == "state" || column.name() == "severity") return Format::kState;
  if (column.type() == v1::QueryColumn::TIME) return Format::kTime;
  if (column.type() == v1::QueryColumn::BOOL) return Format::kYesNo;
  if (column.type() == v1::QueryColumn::TEXTS) return Format::kWords;
  if (column.unit() == "bytes") return Format::kBytes;
  if (column.type() == v1::QueryColumn::NUMBER) {
    if (column.unit() == "min") return Format::kMinutes;
    return Format::kNumber;
  }
  return Format::kText;
}

ListView ViewOf(HistoryKind kind, const v1::QueryResultsResponse& answer) {
  ListView view{.schema = absl::StrCat("assay.", ToString(kind), "_row/v1"),
                .items = client::RowsJson(answer),
                .empty_text = "nothing matches"};
  for (const v1::QueryColumn& column : answer.columns()) {
    const std::string name = client::ExportName(column);
    view.columns.push_back({absl::AsciiStrToUpper(column.name()), name, FormatOf(column)});
  }
  return view;
}

// How many there are, and which are hidden, for who reads a table.
void NoteCounts(const Context& context, const v1::QueryResultsResponse& answer) {
  if (!answer.next_page_token().empty())
    context.Note(absl::StrCat(answer.rows_size(), " of ", answer.total_count(),
                              " are shown; more with --limit N"));
  if (answer.hidden_count() > 0) context.Note(answer.hidden_reason());
}

// Whole entries, as they were always given to programs.
absl::Status PrintWholeEntries(Context* context, const client::Client& client,
                               const v1::QueryResultsRequest& request, int64_t limit) {
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries,
                   FindEntries(client, request.filter(), limit, request.order_by()));
  ListView view{.schema = "assay.entry/v1", .columns = EntryColumns(), .empty_text = "no entries"};
  for (const v1::Submission& entry : entries)
    view.items.push_back(client::EntryJson(entry));
  return context->printer().List(view);
}

absl::StatusOr<ExitStatus> RunQuery(Context* context, const Arguments& arguments) {
  if (arguments.Has("shared") && !arguments.Has("save"))
    return absl::InvalidArgumentError("--shared is of a view that is saved: give --save NAME, too");
  ASSIGN_OR_RETURN(const QuestionOfWords question, ReadQuestion(context, arguments));
  if (arguments.Has("explain")) {
    context->out() << FilterText(question.filter) << "\n";
    return ExitStatus::kDone;
  }
  if (arguments.Has("url")) {
    RETURN_IF_ERROR(PrintUrl(context, question.request));
    return ExitStatus::kDone;
  }
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const int64_t limit, ListLimit(*context, arguments, kRowsAtTerminal));
  const v1::QueryResultsRequest& request = question.request;
  const bool is_plain_question = question.kind == HistoryKind::kEntry &&
                                 request.columns().empty() && request.group_by().empty() &&
                                 request.aggregates().empty();
  if (is_plain_question && context->printer().IsStructured()) {
    RETURN_IF_ERROR(PrintWholeEntries(context, *client, request, limit));
    RETURN_IF_ERROR(SaveIfAsked(context, *client, arguments, request));
    return ExitStatus::kDone;
  }
  ASSIGN_OR_RETURN(const v1::QueryResultsResponse answer,
                   client::AskHistory(*client, request, limit));
  if (answer.rows().empty())
    RETURN_IF_ERROR(CheckNamedRounds(*client, question.kind, answer.filter()));
  RETURN_IF_ERROR(context->printer().List(ViewOf(question.kind, answer)));
  NoteCounts(*context, answer);
  RETURN_IF_ERROR(SaveIfAsked(context, *client, arguments, request));
  return ExitStatus::kDone;
}

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const HistoryKind kind : kHistoryKinds)
    names.emplace_back(ToString(kind));
  return names;
}

}  // namespace

std::vector<Command> QueryCommands() {
  return {
      {.path = "query",
       .summary = "ask the history: filters, columns, groups, statistics",
       .description =
           "A filter is FIELD=VALUE, or another comparison: != < <= > >=, and : for text within "
           "a text or a rule among the findings. A * stands for any text. Terms are joined by "
           "AND, which need not be written, OR, NOT (or -) and parentheses; OR binds tighter than "
           "AND. Times are 2026-11-23 or ago(\"90d\"). 'assay help query' tells all fields, with "
           "examples. Programs that read entries without --columns get them whole.",
       .positionals = {FilterPositional("in quotes, or word by word; nothing: all")},
       .options = {{.name = "kind",
                    .kind = Option::Kind::kChoice,
                    .value = "KIND",
                    .help = "what is asked for; default: entry",
                    .choices = KindNames()},
                   {.name = "columns",
                    .kind = Option::Kind::kText,
                    .value = "FIELDS",
                    .help = "what is shown of each, with commas between"},
                   {.name = "order-by",
                    .kind = Option::Kind::kText,
                    .value = "FIELDS",
                    .help = "minutes, or 'minutes desc, time'; default: newest first"},
                   {.name = "group-by",
                    .kind = Option::Kind::kText,
                    .value = "FIELDS",
                    .help = "a row for each combination of their values"},
                   {.name = "aggregate",
                    .kind = Option::Kind::kText,
                    .value = "LIST",
                    .help =
                        "of each group: count, min(F), max(F), mean(F), sum(F), p50(F), p95(F)"},
                   SinceOption(),
                   ListLimitOption("1000"),
                   {.name = "view",
                    .kind = Option::Kind::kText,
                    .value = "NAME",
                    .help = "ask a saved view, or AUTHOR/NAME; what else is given narrows its "
                            "filter and replaces its columns, order, groups"},
                   {.name = "save",
                    .kind = Option::Kind::kText,
                    .value = "NAME",
                    .help = "keep the question under this name at the coordinator"},
                   {.name = "shared", .help = "of --save: not for you alone (history view list)"},
                   {.name = "url", .help = "print the address of the question on the site only"},
                   {.name = "explain", .help = "print the filter with its parentheses only"}},
       .examples =
           {{"assay query round=v1.0 division=closed state=valid", ""},
            {"assay query '(round=v0.7 OR round=v1.0) minutes<30 nodes>=64' --order-by minutes",
             ""},
            {"assay query 'hyperparameters.global_batch_size>1024 -org=Fujitsu'", ""},
            {"assay query --kind run converged=true --group-by benchmark,round --aggregate "
             "'count,min(minutes),p50(minutes),p95(epoch_seconds)'",
             "statistics of runs"},
            {"assay query round=v1.0 minutes<10 --order-by minutes --save fast", ""},
            {"assay query --view fast division=closed", "the same, and closed"},
            {"assay query --view fast --url", "its page on the site, to be sent on"},
            {"assay query --kind finding 'severity=error created>ago(\"90d\")' -o csv", ""}},
       .run = RunQuery}};
}

}  // namespace assay::cli
