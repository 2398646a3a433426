#include "server/web/pages/entry_list.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "assay/v1/history_service.pb.h"

#include "common/client/history.h"
#include "common/client/message_json.h"
#include "common/client/resource_json.h"
#include "common/status.h"

namespace assay::web {
namespace {

constexpr int64_t kHistoryPageMax = 1000;  // of one call

// Fields of the history, with the names that the same has in the JSON of entries.
struct HistoryMember {
  const char* field;
  const char* member;
};
constexpr HistoryMember kHistoryMembers[] = {
    {"id", "id"},
    {"organization", "organization"},
    {"system", "system"},
    {"benchmark", "benchmark"},
    {"division", "division"},
    {"category", "status"},
    {"round", "round"},
    {"scaling", "scaling"},
    {"metric", "metric"},
    {"state", "state"},
    {"minutes", "minutes"},
    {"models_per_minute", "models_per_minute"},
    {"verdict", "reference_verdict"},
    {"nodes", "nodes"},
    {"accelerators", "accelerators"},
    {"batch", "batch"},
    {"epochs", "epochs"},
    {"epoch_seconds", "epoch_seconds"},
    {"run_count", "run_count"},
    {"imported", "is_imported"},
    {"mlperf", "is_mlperf_result"},
    {"rules_digest", "rules_digest"},
    {"time", "time"},
    {"created", "created"},
    {"hyperparameters.opt_name", "hyperparameters.opt_name"},
    {"hyperparameters.opt_base_learning_rate", "hyperparameters.opt_base_learning_rate"}};

std::string MemberOf(const std::string& column) {
  for (const HistoryMember& member : kHistoryMembers)
    if (column == member.field) return member.member;
  return column;
}

// What is not known has no member.
void AppendRows(const v1::QueryResultsResponse& response, Json* rows) {
  for (const v1::QueryRow& row : response.rows()) {
    Json json = Json::object();
    for (int i = 0; i < std::min(response.columns_size(), row.values_size()); ++i)
      if (Json value = client::ValueJson(row.values(i)); !value.is_null())
        json[MemberOf(response.columns(i).name())] = std::move(value);
    rows->push_back(std::move(json));
  }
}

// Members that follow from others.
void DeriveMembers(Json* row) {
  (*row)["verified"] = IsVerified(*row);
  const Json& minutes = MemberAt(*row, "minutes");
  const Json& nodes = MemberAt(*row, "nodes");
  if (minutes.is_number() && nodes.is_number())
    (*row)["unofficial_node_minutes"] = minutes.get<double>() * nodes.get<double>();
  const Json& accelerators = MemberAt(*row, "accelerators");
  if (minutes.is_number() && accelerators.is_number() && accelerators.get<double>() > 0)
    (*row)["unofficial_accelerator_minutes"] = minutes.get<double>() * accelerators.get<double>();
}

// columns=minutes&columns=nodes, as the form sends them, or columns=minutes,nodes.
std::vector<std::string> AskedColumns(const Request& request) {
  return absl::StrSplit(absl::StrJoin(request.query.All("columns"), ","), ',', absl::SkipEmpty());
}

}  // namespace

Json EntryRow(const v1::Submission& entry) {
  Json row = client::EntryJson(entry);
  if (entry.has_score_minutes()) row["minutes"] = entry.score_minutes();
  row["metric"] = entry.scaling() == "weak" ? "throughput" : "time_to_solution";
  const Json& batch = MemberAt(row, "hyperparameters.global_batch_size");
  if (batch.is_number()) row["batch"] = batch;
  DeriveMembers(&row);
  return row;
}

absl::StatusOr<EntryAnswer> FindEntries(const Context& context, const EntryQuestion& question) {
  v1::QueryResultsRequest request;
  request.set_kind(v1::QueryResultsRequest::ENTRY);
  request.set_filter(question.filter);
  request.set_order_by(question.order_by);
  request.set_page_token(question.page_token);
  for (const HistoryMember& member : kHistoryMembers)
    request.add_columns(member.field);
  EntryAnswer answer;
  while (std::ssize(answer.rows) < question.limit) {
    request.set_page_size(
        static_cast<int32_t>(std::min(kHistoryPageMax, question.limit - std::ssize(answer.rows))));
    ASSIGN_OR_RETURN(const v1::QueryResultsResponse response, context.client.Call(request));
    AppendRows(response, &answer.rows);
    answer.total = response.total_count();
    answer.filter = response.filter();
    answer.hidden = response.hidden_count();
    answer.hidden_reason = response.hidden_reason();
    answer.next_token = response.next_page_token();
    if (answer.next_token.empty()) break;
    request.set_page_token(answer.next_token);
  }
  for (Json& row : answer.rows)
    DeriveMembers(&row);
  return answer;
}

absl::StatusOr<Json> CountEntries(const Context& context, const std::string& filter,
                                  const std::vector<std::string>& fields) {
  v1::QueryResultsRequest request;
  request.set_kind(v1::QueryResultsRequest::ENTRY);
  request.set_filter(filter);
  for (const std::string& field : fields)
    request.add_group_by(field);
  request.add_aggregates("count");
  request.set_page_size(static_cast<int32_t>(kHistoryPageMax));
  ASSIGN_OR_RETURN(const v1::QueryResultsResponse response, context.client.Call(request));
  Json rows = Json::array();
  AppendRows(response, &rows);
  return rows;
}

std::string Equals(absl::string_view field, const Json& value) {
  if (!value.is_string()) return absl::StrCat(field, "=", client::RawText(value));
  std::string quoted;
  for (const char c : value.get<std::string>()) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return absl::StrCat(field, "=\"", quoted, "\"");
}

const std::vector<EntryListColumn>& EntryColumns() {
  static const auto* const kColumns = new std::vector<EntryListColumn>{
      {"id", EntryColumn(), true},
      {"organization", {.title = "Organisation", .member = "organization"}, true},
      {"system", {.title = "System", .member = "system"}, true},
      {"benchmark", {.title = "Benchmark", .member = "benchmark"}, true},
      {"division", {.title = "Division", .member = "division"}, true},
      {"category", {.title = "Category", .member = "status"}},
      {"round",
       {.title = "Round",
        .member = "round",
        .path = [](const Json& row) { return RoundPath(TextOf(row, "round")); }}},
      {"scaling", {.title = "Scaling", .member = "scaling"}},
      {"state", StateColumn()},
      {"nodes", {.title = "Nodes", .member = "nodes", .format = CellFormat::kInteger}, true},
      {"batch", {.title = "Batch (samples)", .member = "batch", .format = CellFormat::kInteger}},
      {"run_count", {.title = "Runs", .member = "run_count", .format = CellFormat::kInteger}, true},
      {"minutes",
       {.title = "Time (min)", .member = "minutes", .format = CellFormat::kMinutes},
       true},
      {"models_per_minute",
       {.title = "Models per min", .member = "models_per_minute", .format = CellFormat::kNumber},
       true},
      {"verified", {.title = "Review", .member = "verified", .draw = VerifiedBadge}, true},
      {"verdict", {.title = "Reference", .member = "reference_verdict"}},
      {"accelerators",
       {.title = "Accelerators", .member = "accelerators", .format = CellFormat::kInteger}},
      {"epochs", {.title = "Epochs", .member = "epochs", .format = CellFormat::kNumber}},
      {"epoch_seconds",
       {.title = "Epoch (s)", .member = "epoch_seconds", .format = CellFormat::kSeconds}},
      {"node_minutes",
       {.title = "Node minutes (unofficial)",
        .member = "unofficial_node_minutes",
        .format = CellFormat::kNumber}},
      {"accelerator_minutes",
       {.title = "Accelerator minutes (unofficial)",
        .member = "unofficial_accelerator_minutes",
        .format = CellFormat::kNumber}},
      {"created", {.title = "Created", .member = "created", .format = CellFormat::kTime}},
      {"optimizer", {.title = "Optimizer", .member = "hyperparameters.opt_name"}},
      {"learning_rate",
       {.title = "Learning rate",
        .member = "hyperparameters.opt_base_learning_rate",
        .format = CellFormat::kNumber}}};
  return *kColumns;
}

std::vector<TableColumn> ChosenColumns(const Request& request) {
  const std::vector<std::string> asked = AskedColumns(request);
  const std::set<std::string> names(asked.begin(), asked.end());
  std::vector<TableColumn> columns;
  for (const EntryListColumn& column : EntryColumns())
    if (column.name == "id" || (names.empty() ? column.is_usual : names.contains(column.name)))
      columns.push_back(column.column);
  return columns;
}

Html EntryListForm(const Request& request, const std::vector<std::string>& hidden) {
  Html html;
  html.Raw("<form method=\"get\" class=\"wide\" role=\"search\"><label>Filter, as ");
  html.Raw("<span>organization=CSCS (nodes&lt;200 OR minutes&lt;60)</span>");
  html.Raw("<input name=\"filter\" maxlength=\"4096\"");
  html.Attribute("value", request.query.First("filter")).Raw("></label>");
  html.Raw("<label>Order<select name=\"order\">");
  for (const auto& [value, text] :
       std::vector<std::pair<std::string, std::string>>{{"", "newest first"},
                                                        {"minutes", "fastest first"},
                                                        {"minutes desc", "slowest first"},
                                                        {"nodes", "fewest nodes first"},
                                                        {"nodes desc", "most nodes first"},
                                                        {"organization", "organisation"}}) {
    html.Raw("<option").Attribute("value", value);
    if (request.query.First("order") == value) html.Raw(" selected");
    html.Raw(">").Text(text).Raw("</option>");
  }
  html.Raw("</select></label><button>Apply</button>");
  for (const std::string& name : hidden)
    if (const std::string value = request.query.First(name); !value.empty())
      html.Raw("<input type=\"hidden\"").Attribute("name", name).Attribute("value", value).Raw(">");
  html.Raw("<details><summary>Columns</summary><fieldset><legend>Columns to show</legend>");
  const std::vector<std::string> asked = AskedColumns(request);
  for (const EntryListColumn& column : EntryColumns()) {
    if (column.name == "id") continue;
    const bool is_shown = asked.empty()
                              ? column.is_usual
                              : std::find(asked.begin(), asked.end(), column.name) != asked.end();
    html.Raw("<label class=\"check\"><input type=\"checkbox\" name=\"columns\"");
    html.Attribute("value", column.name);
    if (is_shown) html.Raw(" checked");
    html.Raw(">").Text(column.column.title).Raw("</label>");
  }
  return html.Raw("</fieldset></details></form>");
}

Html AnswerNote(const EntryAnswer& answer, Markup fit) {
  Html html;
  html.Raw("<p class=\"note\">").Text(GroupDigits(answer.total));
  html.Raw(fit).Raw("<code>").Text(answer.filter.empty() ? "everything" : answer.filter);
  html.Raw("</code>");
  if (answer.hidden > 0) {
    html.Raw("; ").Text(GroupDigits(answer.hidden));
    html.Raw(answer.hidden == 1 ? Markup(" is hidden") : Markup(" are hidden"));
  }
  if (!answer.hidden_reason.empty()) html.Raw(": ").Text(answer.hidden_reason);
  return html.Raw("</p>");
}

Html PageLinks(const Request& request, const EntryAnswer& answer) {
  Html html;
  const bool is_first = request.query.First("after").empty();
  if (is_first && answer.next_token.empty()) return html;
  html.Raw("<p class=\"actions\">");
  if (!is_first) html.Link(QueryWith(request, "after", ""), "First page");
  if (!answer.next_token.empty())
    html.Link(QueryWith(request, "after", answer.next_token), "Next page");
  return html.Raw("</p>");
}

}  // namespace assay::web
