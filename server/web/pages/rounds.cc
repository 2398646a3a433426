// A round: what it demands, and the results that were handed in to it.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "assay/v1/admin_service.pb.h"

#include "common/client/resource_json.h"
#include "common/client/rule_json.h"
#include "common/client/suggest.h"
#include "common/rules/registry.h"
#include "common/status.h"
#include "common/url.h"
#include "server/web/pages/entry_list.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

// The round as the coordinator has it; "v1.0" is hpc-1.0.0.
absl::StatusOr<v1::Round> FindRound(const Context& context, const std::string& asked) {
  const rules::RuleSet* const built_in = rules::FindRuleSet(asked);
  const std::string name = built_in == nullptr ? asked : built_in->name();
  ASSIGN_OR_RETURN(const v1::ListRoundsResponse response,
                   context.client.Call(v1::ListRoundsRequest()));
  std::vector<std::string> known;
  for (const v1::Round& round : response.rounds()) {
    if (round.name() == name) return round;
    known.push_back(round.name());
  }
  return absl::NotFoundError(
      absl::StrCat("there is no round '", asked, "'", client::DidYouMean(asked, known)));
}

// How many entries of each kind: one row for each benchmark, division and metric. `rows` are
// counted by organisation, too.
Json CountKinds(const Json& rows) {
  std::map<std::vector<std::string>, std::pair<int64_t, int64_t>> counts;
  for (const Json& row : rows) {
    auto& [entries, organizations] =
        counts[{TextOf(row, "benchmark"), TextOf(row, "division"), TextOf(row, "metric")}];
    entries += row.value("count", int64_t{0});
    ++organizations;
  }
  Json json = Json::array();
  for (const auto& [key, value] : counts)
    json.push_back({{"benchmark", key[0]},
                    {"division", key[1]},
                    {"metric", key[2]},
                    {"entries", value.first},
                    {"organizations", value.second}});
  return json;
}

Table BenchmarksTable(const Json& details) {
  return {.caption = "What it demands",
          .empty = "The coordinator's own round: its file says what it demands.",
          .columns = {{.title = "Benchmark", .member = "id"},
                      {.title = "Runs", .member = "runs", .format = CellFormat::kInteger},
                      {.title = "Quality", .member = "quality_key", .format = CellFormat::kCode},
                      {.title = "Target", .member = "target", .format = CellFormat::kNumber},
                      {.title = "Better", .member = "better"},
                      {.title = "Fixed", .member = "fixed", .format = CellFormat::kWords},
                      {.title = "Batch sizes with a reference",
                       .member = "reference_batch_sizes",
                       .format = CellFormat::kWords}},
          .rows = MemberAt(details, "benchmark_details").is_array() ? details["benchmark_details"]
                                                                    : Json::array()};
}

Table CountsTable(const std::string& round, Json rows) {
  return {.caption = "Entries",
          .empty = "There is no entry that you may see.",
          .columns = {{.title = "Benchmark",
                       .member = "benchmark",
                       .path =
                           [round](const Json& row) {
                             return absl::StrCat(RoundPath(round), "/results?benchmark=",
                                                 EncodeUrl(TextOf(row, "benchmark")),
                                                 "&division=", EncodeUrl(TextOf(row, "division")),
                                                 "&metric=", EncodeUrl(TextOf(row, "metric")));
                           }},
                      {.title = "Division", .member = "division"},
                      {.title = "Metric", .member = "metric"},
                      {.title = "Entries", .member = "entries", .format = CellFormat::kInteger},
                      {.title = "Organisations",
                       .member = "organizations",
                       .format = CellFormat::kInteger}},
          .rows = std::move(rows)};
}

// What the tabs have chosen, as a filter.
std::string SelectionFilter(const Request& request) {
  std::string filter;
  for (const char* const field : {"benchmark", "division", "metric", "category"})
    if (const std::string value = request.query.First(field); !value.empty())
      absl::StrAppend(&filter, " ", Equals(field, value));
  return filter;
}

// Tabs for the values that the rows have; "" is all.
Html TabsOf(const Request& request, Markup label, const char* parameter, const char* member,
            const Json& rows) {
  std::set<std::string> values;
  for (const Json& row : rows)
    if (const std::string value = TextOf(row, member); !value.empty()) values.insert(value);
  std::vector<std::pair<std::string, std::string>> choices = {{"", "all"}};
  for (const std::string& value : values)
    choices.push_back({value, value == "time_to_solution" ? "time to solution" : value});
  if (choices.size() < 3) return {};
  Html html;
  html.Raw("<div class=\"actions\"><span class=\"note\">").Raw(label).Raw("</span>");
  html.Add(Tabs(request, label, parameter, request.query.First(parameter), choices));
  return html.Raw("</div>");
}

}  // namespace

absl::StatusOr<Response> RoundPage(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const v1::Round round, FindRound(context, request.parameters.First("round")));
  ASSIGN_OR_RETURN(const Json counts,
                   CountEntries(context, Equals("round", round.name()),
                                {"benchmark", "division", "metric", "organization"}));
  PageView view{.title = round.name(), .crumbs = {{"Results", "/"}}};
  const rules::RuleSet* const rules = rules::FindRuleSet(round.name());
  const Json details =
      rules == nullptr ? client::RoundJson(round) : client::RoundDetailsJson(*rules);
  view.table = CountsTable(round.name(), CountKinds(counts));
  view.json = {{"round", details}, {"entries", view.table.rows}};
  view.rules = {{round.name(), round.digest()}};
  view.main.Raw("<h1>").Text(round.name()).Raw("</h1><p class=\"sub\">").Text(round.label());
  view.main.Raw("</p><p class=\"actions\">");
  view.main.Link(RoundPath(round.name()) + "/results", "All results");
  view.main.Link(absl::StrCat("/rules?round=", EncodeUrl(round.name())), "Its rules");
  view.main.Link(absl::StrCat("/scaling?filter=", EncodeUrl("round=" + round.name())), "Scaling");
  view.main.Raw("</p><h2>Entries</h2>").Add(TableHtml(view.table));
  view.main.Raw("<h2>What it demands</h2>").Add(TableHtml(BenchmarksTable(details)));
  view.main.Add(FactsHtml(
      details, {{.title = "Results are MLPerf results", .member = "is_mlperf_result"},
                {.title = "Runs that count", .member = "counts"},
                {.title = "Failed runs allowed in a set", .member = "failed_runs_allowed"},
                {.title = "Staging is on the clock", .member = "is_staging_timed"},
                {.title = "Initialisation at most (ms)",
                 .member = "init_limit_ms",
                 .format = CellFormat::kInteger}}));
  return Render(context, request, view);
}

absl::StatusOr<Response> ResultsPage(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const v1::Round round, FindRound(context, request.parameters.First("round")));
  std::string filter = Equals("round", round.name());
  if (const std::string more = request.query.First("filter"); !more.empty())
    absl::StrAppend(&filter, " (", more, ")");
  ASSIGN_OR_RETURN(const Json kinds,
                   CountEntries(context, filter, {"benchmark", "division", "metric", "category"}));
  ASSIGN_OR_RETURN(const EntryAnswer entries,
                   FindEntries(context, {.filter = filter + SelectionFilter(request),
                                         .order_by = request.query.First("order"),
                                         .limit = request.format.empty() ? kRowsAtFirst : 10'000,
                                         .page_token = request.query.First("after")}));
  PageView view{.title = absl::StrCat("Results of ", round.name()),
                .crumbs = {{"Results", "/"}, {round.name(), RoundPath(round.name())}}};
  view.table = {.caption = absl::StrCat("Results of ", round.name()),
                .empty = "No entry fits: choose another tab or widen the filter.",
                .columns = ChosenColumns(request),
                .rows = entries.rows};
  view.json = {{"filter", entries.filter}, {"items", view.table.rows}};
  view.rules = {{round.name(), round.digest()}};
  view.main.Raw("<h1>Results of ").Text(round.name()).Raw("</h1><p class=\"sub\">");
  view.main.Text(round.label()).Raw("</p>");
  view.main.Raw("<div class=\"tabbing\">");
  view.main.Add(TabsOf(request, "Benchmark", "benchmark", "benchmark", kinds));
  view.main.Add(TabsOf(request, "Division", "division", "division", kinds));
  view.main.Add(TabsOf(request, "Metric", "metric", "metric", kinds));
  view.main.Add(TabsOf(request, "Category", "category", "status", kinds));
  view.main.Raw("</div>").Add(
      EntryListForm(request, {"benchmark", "division", "metric", "category"}));
  view.main.Add(AnswerNote(entries)).Add(TableHtml(view.table)).Add(PageLinks(request, entries));
  view.main.Add(ScoreFootnotes(round.name()));
  return Render(context, request, view);
}

}  // namespace assay::web
