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
#include "common/client/entry_score.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
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

// The runs of a set that have a time to the target, and when the first of them started.
struct Measured {
  analysis::RunSet set;
  int64_t time_ms = 0;
};

absl::StatusOr<Measured> MeasureSet(const Context& context, const Json& row) {
  ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(context.client, TextOf(row, "id")));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs,
                   client::AllRunsOf(context.client, entry.name()));
  Measured measured{.set = {.name = TextOf(row, "id"), .is_weak = entry.scaling() == "weak"}};
  constexpr double kMinuteMs = 60e3;
  for (const v1::Run& run : client::RunsThatCount(entry, runs)) {
    const bool has_time = run.has_run_start_ms() && run.has_run_stop_ms();
    if (!has_time || !run.is_converged() || run.epoch_count() < 1 ||
        run.run_stop_ms() <= run.run_start_ms()) {
      ++measured.set.failed_count;
      continue;
    }
    measured.set.runs.push_back(
        {.minutes = static_cast<double>(run.run_stop_ms() - run.run_start_ms()) / kMinuteMs,
         .epochs = static_cast<double>(run.epoch_count())});
    if (measured.time_ms == 0 || run.run_start_ms() < measured.time_ms)
      measured.time_ms = run.run_start_ms();
  }
  return measured;
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

void AddChanges(const analysis::Series& series, Html* html) {
  html->Raw("<h3>Changes</h3>");
  bool has_any = false;
  for (const analysis::MeasureHistory& measure : series.measures)
    for (const analysis::Change& change : measure.changes) {
      if (change.is_vetoed) continue;
      has_any = true;
      const std::string& set = series.points[static_cast<size_t>(change.first)].set;
      html->Raw("<p>").Text(std::string(analysis::TextOf(measure.measure))).Raw(" from ");
      html->Link(EntryPath(set), set).Raw(" on: ");
      html->Text(CellText(change.ratio, CellFormat::kNumber)).Raw(" times what was before.</p>");
    }
  if (!has_any) html->Raw("<p class=\"none\">No change was found.</p>");
}

absl::StatusOr<analysis::Series> ReadSeries(const Context& context, const Json& rows) {
  std::vector<analysis::SeriesPoint> points;
  for (const Json& row : rows) {
    ASSIGN_OR_RETURN(const Measured measured, MeasureSet(context, row));
    if (auto point = analysis::PointOf(measured.set, measured.time_ms); point.has_value())
      points.push_back(*std::move(point));
  }
  const Json& first = rows.front();
  const auto number = [&first](const char* member) {
    const Json& value = MemberAt(first, member);
    return value.is_number() ? value.get<int64_t>() : 0;
  };
  return analysis::JudgeSeries({.system = TextOf(first, "system"),
                                .benchmark = TextOf(first, "benchmark"),
                                .division = TextOf(first, "division"),
                                .round = TextOf(first, "round"),
                                .scaling = TextOf(first, "scaling"),
                                .scale = number("nodes"),
                                .batch_size = number("batch")},
                               std::move(points), {}, {});
}

}  // namespace

absl::StatusOr<Response> HistoryPage(const Context& context, const Request& request) {
  const std::string chosen = request.query.First("series");
  PageView view{.title = "History", .crumbs = {{"Results", "/"}}};
  Html& main = view.main;
  main.Raw(
      "<h1>History</h1><p class=\"sub\">Whether a set is what those before it let expect: by "
      "seconds per epoch, and apart from it by epochs to the target.</p>");
  if (chosen.empty()) {
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
  view.crumbs.push_back({"History", "/history"});
  ASSIGN_OR_RETURN(const EntryAnswer sets,
                   FindEntries(context, {.filter = chosen, .limit = kSetsMax}));
  if (sets.rows.empty())
    return absl::NotFoundError(absl::StrCat("no set that you may see belongs to ", sets.filter));
  ASSIGN_OR_RETURN(const analysis::Series series, ReadSeries(context, sets.rows));
  view.table = PointsOfSeries(series);
  view.json = {{"series", chosen}, {"sets", view.table.rows}};
  view.rules = {{TextOf(sets.rows.front(), "round"), TextOf(sets.rows.front(), "rules_digest")}};
  main.Raw("<h2>").Text(analysis::TextOf(series.key)).Raw("</h2>");
  if (!series.points.empty())
    for (const analysis::MeasureHistory& measure : series.measures)
      main.Raw("<h3>")
          .Text(std::string(analysis::TextOf(measure.measure)))
          .Raw("</h3>")
          .Add(DrawLines(SeriesChart(series, measure)));
  AddChanges(series, &main);
  main.Raw("<h3>The sets</h3>").Add(TableHtml(view.table));
  return Render(context, request, view);
}

}  // namespace assay::web
