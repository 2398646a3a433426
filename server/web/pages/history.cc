// The history of a system: sets that measure the same thing again and again, in order of time.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/analysis/series.h"
#include "common/analysis/set_comparison.h"
#include "common/client/pages.h"
#include "common/client/set_history.h"
#include "common/status.h"
#include "server/web/chart.h"
#include "server/web/pages/entry_list.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

// Of a series so many sets are read, the newest.
constexpr int64_t kSetsMax = 100;
constexpr size_t kSeriesShown = 200;

// What entries of one series have in common.
const std::vector<std::string>& SeriesFields() {
  static const auto* const kFields = new std::vector<std::string>{
      "organization", "system", "benchmark", "division", "round", "scaling", "nodes", "batch"};
  return *kFields;
}

// The filter that finds the entries of a series. It is its name in the address.
std::string SeriesFilter(const Json& group) {
  std::string filter = "state=valid";
  for (const std::string& field : SeriesFields())
    if (const Json& value = MemberAt(group, field); !value.is_null() && value != "")
      absl::StrAppend(&filter, " ", Equals(field, value));
  return filter;
}

Table SeriesTable(const Json& groups, const Request& request) {
  Table table{
      .caption = "Series: sets of one system, benchmark, round, scale and batch",
      .empty = "No entry with a score fits.",
      .columns = {{.title = "System",
                   .member = "system",
                   .path =
                       [request](const Json& row) {
                         return absl::StrCat("/history",
                                             QueryWith(request, "series", TextOf(row, "series")));
                       }},
                  {.title = "Organisation", .member = "organization"},
                  {.title = "Benchmark", .member = "benchmark"},
                  {.title = "Division", .member = "division"},
                  {.title = "Round", .member = "round"},
                  {.title = "Nodes", .member = "nodes", .format = CellFormat::kInteger},
                  {.title = "Batch (samples)", .member = "batch", .format = CellFormat::kInteger},
                  {.title = "Sets", .member = "sets", .format = CellFormat::kInteger}}};
  for (const Json& group : groups) {
    Json row = group;
    row["series"] = SeriesFilter(group);
    row["sets"] = row["count"];
    row.erase("count");
    table.rows.push_back(std::move(row));
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const Json& a, const Json& b) { return a["sets"] > b["sets"]; });
  while (table.rows.size() > kSeriesShown)
    table.rows.erase(table.rows.size() - 1);
  return table;
}

Json PointRow(const analysis::Series& series, size_t at) {
  const analysis::SeriesPoint& point = series.points[at];
  Json row = {{"id", point.set},
              {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(point.time_ms),
                                        absl::UTCTimeZone())},
              {"runs", point.run_count}};
  for (const analysis::MeasureHistory& measure : series.measures) {
    const std::string name(analysis::NameOf(measure.measure));
    const analysis::Judgement& judgement = measure.judgements[at];
    row[name] = analysis::ValueOf(point, measure.measure);
    row[name + "_standing"] = judgement.standing == analysis::Standing::kTooFew
                                  ? "too few before it"
                                  : std::string(analysis::NameOf(judgement.standing));
    if (judgement.interval) {
      row[name + "_low"] = judgement.interval->low;
      row[name + "_high"] = judgement.interval->high;
    }
  }
  return row;
}

Table PointsOfSeries(const analysis::Series& series) {
  Table table{.caption = "Each set, judged by those before it",
              .empty = "None of its sets has a run that reached the target.",
              .columns = {EntryColumn(),
                          {.title = "Measured", .member = "time", .format = CellFormat::kTime},
                          {.title = "Runs", .member = "runs", .format = CellFormat::kInteger}}};
  for (const auto& [title, name] : std::vector<std::pair<std::string, std::string>>{
           {"Seconds per epoch", "epoch_seconds"}, {"Epochs", "epochs"}}) {
    table.columns.push_back({.title = title, .member = name, .format = CellFormat::kNumber});
    table.columns.push_back(
        {.title = "at least", .member = name + "_low", .format = CellFormat::kNumber});
    table.columns.push_back(
        {.title = "at most", .member = name + "_high", .format = CellFormat::kNumber});
    table.columns.push_back({.title = "Standing", .member = name + "_standing"});
  }
  for (size_t i = 0; i < series.points.size(); ++i)
    table.rows.push_back(PointRow(series, i));
  return table;
}

LineChart SeriesChart(const analysis::Series& series, const analysis::MeasureHistory& measure) {
  LineChart chart{.id = std::string(analysis::NameOf(measure.measure)),
                  .title = absl::StrCat(analysis::TextOf(measure.measure), " by set"),
                  .description =
                      "Each point is a set, in order of time; the band is where 99.9 % of "
                      "sets like those before it are expected. The table below has the "
                      "numbers.",
                  .x = {.label = "set, in order of time"},
                  .y = {.label = std::string(analysis::TextOf(measure.measure))},
                  .band_name = "99.9 % prediction interval"};
  ChartLine line{.name = std::string(analysis::TextOf(measure.measure))};
  for (size_t i = 0; i < series.points.size(); ++i) {
    const double x = static_cast<double>(i + 1);
    line.points.push_back({x, analysis::ValueOf(series.points[i], measure.measure)});
    if (const auto& interval = measure.judgements[i].interval; interval.has_value())
      chart.band.push_back({x, interval->low, interval->high});
  }
  chart.lines.push_back(std::move(line));
  return chart;
}

// What has changed and what differs there, marked and vetoed changes too.
Html ChangesHtml(const Json& changes) {
  Html html;
  html.Raw("<h3>Changes</h3>");
  if (changes.empty()) return html.Raw("<p class=\"none\">No change was found.</p>");
  for (const Json& change : changes) {
    const std::string set = TextOf(change, "first_set");
    html.Raw("<p>").Text(TextOf(change, "measure")).Raw(" from ").Link(EntryPath(set), set);
    html.Raw(" on: ").Text(CellText(change["ratio"], CellFormat::kNumber));
    html.Raw(" times what was before. ").Text(TextOf(change, "state"));
    if (const std::string author = TextOf(change, "author"); !author.empty())
      html.Text(absl::StrCat(" by ", author, ": ", TextOf(change, "reason")));
    html.Raw("</p>");
    if (const Json& differs = change["differs"]; !differs.empty())
      html.Add(TableHtml(
          {.caption =
               absl::StrCat("What differs between ", TextOf(change, "set_before"), " and ", set),
           .columns = {{.title = "Field", .member = "field", .format = CellFormat::kCode},
                       {.title = "Before", .member = "before", .format = CellFormat::kWords},
                       {.title = "After", .member = "after", .format = CellFormat::kWords}},
           .rows = differs}));
  }
  return html;
}

absl::StatusOr<client::SetHistory> ReadHistory(const Context& context, const Json& rows) {
  std::vector<v1::Submission> entries;
  for (const Json& row : rows) {
    ASSIGN_OR_RETURN(v1::Submission entry, client::GetEntry(context.client, TextOf(row, "id")));
    entries.push_back(std::move(entry));
  }
  return client::ReadSetHistory(context.client, entries, {}, [](const std::string&) {});
}

void AddSeries(const analysis::Series& series, const client::SetHistory& history, PageView* view) {
  Html& main = view->main;
  const std::string name = analysis::TextOf(series.key);
  main.Raw("<h2>").Text(name).Raw("</h2>");
  for (const analysis::MeasureHistory& measure : series.measures) {
    LineChart chart = SeriesChart(series, measure);
    absl::StrAppend(&chart.id, "-", view->json["series"].size());
    main.Raw("<h3>").Text(std::string(analysis::TextOf(measure.measure))).Raw("</h3>");
    main.Add(DrawLines(chart));
  }
  const Json changes = client::ChangesJson(series, history.views);
  const Table points = PointsOfSeries(series);
  main.Add(ChangesHtml(changes)).Raw("<h3>The sets</h3>").Add(TableHtml(points));
  for (Json row : points.rows) {
    row["series"] = name;
    view->table.rows.push_back(std::move(row));
  }
  Json json = client::SeriesJson(series);
  json["changes"] = changes;
  view->json["series"].push_back(std::move(json));
}

absl::StatusOr<Response> SeriesPage(const Context& context, const Request& request,
                                    const std::string& filter, PageView view) {
  view.crumbs.push_back({"History", "/history"});
  ASSIGN_OR_RETURN(const EntryAnswer sets,
                   FindEntries(context, {.filter = filter, .limit = kSetsMax}));
  if (sets.rows.empty())
    return absl::NotFoundError(absl::StrCat("no set that you may see belongs to ", sets.filter));
  ASSIGN_OR_RETURN(const client::SetHistory history, ReadHistory(context, sets.rows));
  view.rules = {{TextOf(sets.rows.front(), "round"), TextOf(sets.rows.front(), "rules_digest")}};
  view.json = {{"filter", filter}, {"series", Json::array()}};
  view.table = PointsOfSeries({});
  view.table.columns.push_back({.title = "Series", .member = "series"});
  if (history.series.empty())
    view.main.Raw("<p class=\"none\">None of its sets has a run that reached the target.</p>");
  for (const analysis::Series& series : history.series)
    AddSeries(series, history, &view);
  return Render(context, request, view);
}

}  // namespace

absl::StatusOr<Response> HistoryPage(const Context& context, const Request& request) {
  const std::string chosen = request.query.First("series");
  PageView view{.title = "History", .crumbs = {{"Results", "/"}}};
  Html& main = view.main;
  main.Raw(
      "<h1>History</h1><p class=\"sub\">Whether a set is what those before it let expect: by "
      "seconds per epoch, and apart from it by epochs to the target.</p>");
  if (!chosen.empty()) return SeriesPage(context, request, chosen, std::move(view));
  const std::string asked = request.query.First("filter");
  const std::string filter =
      asked.empty() ? "state=valid" : absl::StrCat("state=valid (", asked, ")");
  ASSIGN_OR_RETURN(const Json groups, CountEntries(context, filter, SeriesFields()));
  main.Raw(
      "<form method=\"get\" class=\"wide\" role=\"search\"><label>Filter<input name=\"filter\"");
  main.Attribute("value", request.query.First("filter"))
      .Raw("></label><button>Apply</button></form>");
  view.table = SeriesTable(groups, request);
  main.Add(TableHtml(view.table));
  view.json = {{"filter", filter}, {"series", view.table.rows}};
  return Render(context, request, view);
}

}  // namespace assay::web
