#include "server/web/pages/query_rows.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/client/history.h"
#include "common/client/saved_views.h"
#include "common/status.h"
#include "server/web/chart.h"
#include "server/web/pages/entry_list.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

constexpr int64_t kRowsOfData = 10'000;
// More bars are not read by anybody; the table has them all.
constexpr int kBarsMax = 40;

google::protobuf::RepeatedPtrField<std::string> ListOf(const Fields& fields,
                                                       absl::string_view name) {
  google::protobuf::RepeatedPtrField<std::string> list;
  for (const std::string& value : fields.All(name))
    for (const absl::string_view part : absl::StrSplit(value, ',', absl::SkipWhitespace()))
      list.Add(std::string(absl::StripAsciiWhitespace(part)));
  return list;
}

bool IsGrouped(const v1::View& question) {
  return !question.group_by().empty() || !question.aggregates().empty();
}

void AddTextField(Markup label, Markup name, const std::string& value, Html* html) {
  html->Raw("<label>").Raw(label).Raw("<input maxlength=\"1000\" name=\"").Raw(name).Raw("\"");
  html->Attribute("value", value).Raw("></label>");
}

Html QuestionForm(const v1::View& question) {
  Html html;
  html.Raw("<form method=\"get\" class=\"wide\" role=\"search\"><label>Filter, as ");
  html.Raw("<span>converged=true (nodes&lt;200 OR minutes&lt;60)</span>");
  html.Raw("<input name=\"filter\" maxlength=\"4096\"");
  html.Attribute("value", question.filter()).Raw("></label>");
  html.Raw("<input type=\"hidden\" name=\"kind\"").Attribute("value", question.kind()).Raw(">");
  AddTextField("Order", "order", question.order_by(), &html);
  AddTextField("Columns", "columns", absl::StrJoin(question.columns(), ", "), &html);
  AddTextField("Group by", "group_by", absl::StrJoin(question.group_by(), ", "), &html);
  AddTextField("Statistics, as p50(minutes)", "aggregate",
               absl::StrJoin(question.aggregates(), ", "), &html);
  return html.Raw("<button>Ask</button></form>");
}

CellFormat FormatOf(const v1::QueryColumn& column) {
  switch (column.type()) {
    case v1::QueryColumn::INTEGER:
      return column.unit() == "bytes" ? CellFormat::kBytes : CellFormat::kInteger;
    case v1::QueryColumn::NUMBER:
      if (column.unit() == "min") return CellFormat::kMinutes;
      return column.unit() == "s" ? CellFormat::kSeconds : CellFormat::kNumber;
    case v1::QueryColumn::BOOL:
      return CellFormat::kYesNo;
    case v1::QueryColumn::TIME:
      return CellFormat::kTime;
    case v1::QueryColumn::TEXTS:
      return CellFormat::kWords;
    default:
      return CellFormat::kText;
  }
}

// What names a page of the site links to it.
TableColumn ColumnOf(const v1::QueryColumn& column, const std::string& kind) {
  const std::string member = client::ExportName(column);
  const std::string& name = column.name();
  TableColumn made{
      .title = column.unit().empty() ? name : absl::StrCat(name, " (", column.unit(), ")"),
      .member = member,
      .format = FormatOf(column)};
  const auto links_to = [&made, &member](std::string (*path)(absl::string_view)) {
    made.path = [member, path](const Json& row) {
      const std::string text = TextOf(row, member);
      return text.empty() ? text : path(text);
    };
  };
  if (name == "entry" || (name == "id" && kind == "entry")) links_to(EntryPath);
  if (name == "run" || (name == "id" && kind == "run")) links_to(RunPath);
  if (name == "id" && kind == "worker") links_to(NodePath);
  if (name == "round") links_to(RoundPath);
  if (name == "rule") links_to(RulePath);
  if (name == "state")
    made.draw = [member](const Json& row) { return StateBadge(TextOf(row, member)); };
  return made;
}

std::string GroupName(const v1::View& question, const Table& table, const Json& row) {
  std::vector<std::string> words;
  for (const TableColumn& column : table.columns) {
    if (std::ssize(words) == question.group_by_size()) break;
    words.push_back(CellText(MemberAt(row, column.member), column.format));
  }
  return words.empty() ? "all" : absl::StrJoin(words, ", ");
}

// Of the first statistic: what the other columns say is in the table.
Html GroupChart(const v1::View& question, const v1::QueryResultsResponse& answer,
                const Table& table) {
  const int at = question.group_by_size();
  if (at == 0 || at >= answer.columns_size()) return {};
  const v1::QueryColumn& column = answer.columns(at);
  BarChart chart{
      .id = "groups",
      .title = absl::StrCat(column.name(), " by ", absl::StrJoin(question.group_by(), ", ")),
      .description = "The table below has the numbers.",
      .unit = column.unit().empty() ? column.name() : column.unit(),
      .names = {column.name()}};
  for (const Json& row : table.rows) {
    const Json& value = MemberAt(row, client::ExportName(column));
    if (!value.is_number() || std::ssize(chart.bars) == kBarsMax) continue;
    chart.bars.push_back(
        {.name = GroupName(question, table, row), .values = {value.get<double>()}});
  }
  return chart.bars.empty() ? Html() : DrawBars(chart);
}

absl::string_view PluralOf(HistoryKind kind) {
  switch (kind) {
    case HistoryKind::kEntry:
      return "Entries";
    case HistoryKind::kRun:
      return "Runs";
    case HistoryKind::kFinding:
      return "Findings";
    case HistoryKind::kWorker:
      return "Nodes";
    case HistoryKind::kHyperparameter:
      return "Hyperparameters";
  }
  return "";
}

}  // namespace

Html QueryHead(absl::string_view kind) {
  Html html;
  html.Raw("<h1>Query</h1><p class=\"sub\">Every question is an address: keep it, or send it on. ");
  html.Link("/help#filters", "How questions are written").Raw("</p>");
  html.Raw("<nav class=\"tabs\" aria-label=\"What is asked for\">");
  for (const HistoryKind each : kHistoryKinds) {
    const absl::string_view name = ToString(each);
    html.Raw("<a").Attribute("href", absl::StrCat("/query?kind=", name));
    if (name == kind) html.Raw(" aria-current=\"true\"");
    html.Raw(">").Text(PluralOf(each)).Raw("</a>");
  }
  return html.Raw("</nav>");
}

absl::StatusOr<v1::View> QuestionOf(const Fields& fields) {
  v1::View question;
  question.set_kind(fields.First("kind"));
  if (question.kind().empty()) question.set_kind(std::string(ToString(HistoryKind::kEntry)));
  if (!ParseHistoryKind(question.kind()).has_value()) {
    std::vector<absl::string_view> kinds;
    for (const HistoryKind kind : kHistoryKinds)
      kinds.push_back(ToString(kind));
    return absl::InvalidArgumentError(absl::StrCat("there is no kind '", question.kind(),
                                                   "'; kinds: ", absl::StrJoin(kinds, ", ")));
  }
  question.set_filter(fields.First("filter"));
  question.set_order_by(fields.First("order"));
  *question.mutable_columns() = ListOf(fields, "columns");
  *question.mutable_group_by() = ListOf(fields, "group_by");
  *question.mutable_aggregates() = ListOf(fields, "aggregate");
  return question;
}

absl::StatusOr<Response> RowsPage(const Context& context, const Request& request,
                                  const v1::View& question, const Html& links) {
  v1::QueryResultsRequest asked = client::QuestionOfView(question);
  asked.set_page_token(request.query.First("after"));
  ASSIGN_OR_RETURN(const v1::QueryResultsResponse response,
                   client::AskHistory(context.client, std::move(asked),
                                      request.format.empty() ? kRowsAtFirst : kRowsOfData));
  EntryAnswer answer{.rows = client::RowsJson(response),
                     .total = response.total_count(),
                     .filter = response.filter(),
                     .next_token = response.next_page_token(),
                     .hidden = response.hidden_count(),
                     .hidden_reason = response.hidden_reason()};
  PageView view{.title = "Query", .crumbs = {{"Results", "/"}}};
  view.table = {
      .caption = absl::StrCat("A row for each ", IsGrouped(question) ? "group" : question.kind()),
      .empty = "Nothing that you may see fits.",
      .rows = answer.rows};
  for (const v1::QueryColumn& column : response.columns())
    view.table.columns.push_back(ColumnOf(column, question.kind()));
  view.json = {{"kind", question.kind()},
               {"filter", answer.filter},
               {"total", answer.total},
               {"hidden", answer.hidden},
               {"items", answer.rows}};
  Html& main = view.main;
  main.Add(QueryHead(question.kind())).Add(QuestionForm(question));
  main.Add(IsGrouped(question) ? AnswerNote(answer, " groups of what fits ") : AnswerNote(answer));
  if (IsGrouped(question)) main.Add(GroupChart(question, response, view.table));
  main.Add(TableHtml(view.table)).Add(PageLinks(request, answer)).Add(links);
  main.Add(ScoreFootnotes("the round that each names"));
  return Render(context, request, view);
}

}  // namespace assay::web
