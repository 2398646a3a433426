#include "server/web/pages/run_sections.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/client/cache_records.h"
#include "common/client/cancellation.h"
#include "common/client/run_bytes.h"
#include "common/client/run_profile.h"
#include "common/client/run_telemetry.h"
#include "common/client/touch_records.h"
#include "common/telemetry/bytes.h"
#include "common/telemetry/summary.h"
#include "server/web/chart.h"
#include "server/web/pages/parts.h"
#include "server/web/table.h"

namespace assay::web {
namespace {

constexpr size_t kChartPoints = 240;
constexpr size_t kNodesDrawn = 8;

// What is drawn: names of measures, or how they begin.
constexpr const char* kDrawn[] = {"run.cpu", "run.memory", "run.read", "energy.", "power."};

void AddTouchRecords(const Context& context, const v1::Run& run, PageView* view) {
  const absl::StatusOr<Json> touches = client::TouchesOf(context.client, run, absl::UTCTimeZone());
  view->main.Raw("<h2 id=\"touch\">First touch of the data</h2>");
  if (!touches.ok() || touches->empty()) {
    view->main.Raw(
        "<p class=\"none\">No node wrote one down: only its log says when it began.</p>");
    return;
  }
  view->json["touches"] = *touches;
  view->main.Add(TableHtml(
      {.caption = "As each node saw it",
       .columns = {{.title = "Node", .member = "node", .format = CellFormat::kInteger},
                   {.title = "Strength", .member = "assurance"},
                   {.title = "Off by", .member = "off_by"},
                   {.title = "By", .member = "by"},
                   {.title = "Mechanism", .member = "mechanism"},
                   {.title = "Watching", .member = "watched"},
                   {.title = "File", .member = "path", .format = CellFormat::kWords},
                   {.title = "In words", .member = "sentence", .format = CellFormat::kWords}},
       .rows = *touches}));
  const Json holes = client::TouchHolesOf(*touches);
  view->json["touch_holes"] = holes;
  view->main.Add(
      TableHtml({.caption = "What could have been before it, unseen",
                 .empty = "Nothing could have been before it, unseen.",
                 .columns = {{.title = "Node", .member = "node", .format = CellFormat::kInteger},
                             {.title = "Hole", .member = "code", .format = CellFormat::kCode},
                             {.title = "Why", .member = "why", .format = CellFormat::kWords}},
                 .rows = holes}));
}

void AddCacheRecords(const Context& context, const v1::Run& run, PageView* view) {
  const absl::StatusOr<Json> caches = client::CachesOf(context.client, run);
  if (!caches.ok() || caches->empty()) return;
  view->json["caches"] = *caches;
  view->main.Raw("<h2 id=\"caches\">Caches when it began</h2>");
  view->main.Add(TableHtml(
      {.caption = "How each node's caches were reset",
       .columns =
           {{.title = "Node", .member = "node", .format = CellFormat::kInteger},
            {.title = "Coldness", .member = "coldness"},
            {.title = "Method", .member = "method"},
            {.title = "Pages in memory",
             .member = "resident_pages",
             .format = CellFormat::kInteger},
            {.title = "Files checked", .member = "checked_files", .format = CellFormat::kInteger},
            {.title = "of", .member = "file_count", .format = CellFormat::kInteger},
            {.title = "Bound", .member = "bound_bytes", .format = CellFormat::kBytes},
            {.title = "File system", .member = "file_system"},
            {.title = "Reason", .member = "reason", .format = CellFormat::kWords}},
       .rows = *caches}));
}

void AddBytesRead(const Context& context, const v1::Run& run, PageView* view) {
  const absl::StatusOr<Json> bytes = client::BytesOf(context.client, run);
  if (!bytes.ok() || bytes->is_null()) return;
  view->json["bytes"] = *bytes;
  view->main.Raw("<h2 id=\"bytes\">Bytes read</h2>");
  view->main.Add(
      FactsHtml((*bytes)["first_pass"],
                {{.title = "Training data", .member = "train_bytes", .format = CellFormat::kBytes},
                 {.title = "From storage by the end of epoch 1",
                  .member = "storage_bytes",
                  .format = CellFormat::kBytes},
                 {.title = "Share of the training data",
                  .member = "of_train_data",
                  .format = CellFormat::kNumber},
                 {.title = "Not known because", .member = "why"}}));
  view->main.Add(TableHtml(
      {.caption = "By part of the run; without a node: all nodes together",
       .columns = {{.title = "Phase", .member = "phase"},
                   {.title = "Node", .member = "node", .format = CellFormat::kInteger},
                   {.title = "Time (s)", .member = "seconds", .format = CellFormat::kNumber},
                   {.title = "Storage", .member = "storage_bytes", .format = CellFormat::kBytes},
                   {.title = "Disks", .member = "disk_bytes", .format = CellFormat::kBytes},
                   {.title = "Servers", .member = "server_bytes", .format = CellFormat::kBytes},
                   {.title = "Network", .member = "network_bytes", .format = CellFormat::kBytes}},
       .rows = (*bytes)["phases"]}));
}

bool IsDrawn(const std::string& measure) {
  for (const char* const prefix : kDrawn)
    if (absl::StartsWith(measure, prefix)) return true;
  return false;
}

// One chart for each measure, with a line for each node.
using Panels = std::map<std::string, LineChart>;

void AddPanels(const v1::Run& run, const client::NodeTelemetry& node, Panels* panels, Json* rows) {
  const telemetry::Series& series = node.series;
  if (series.at_ns.empty()) return;
  const int64_t begin_ns = series.at_ns.front();
  const int64_t end_ns = series.at_ns.back();
  const size_t parts = telemetry::PartCountOf(begin_ns, end_ns, kChartPoints);
  for (const telemetry::Figure& figure : telemetry::Summarize(series, begin_ns, end_ns)) {
    const std::string unit = figure.is_counter ? absl::StrCat(figure.unit, "/s") : figure.unit;
    rows->push_back({{"node", node.node},
                     {"measure", figure.name},
                     {"mean", figure.mean},
                     {"highest", figure.highest},
                     {"unit", unit}});
    if (!IsDrawn(figure.name) || static_cast<size_t>(node.node) >= kNodesDrawn) continue;
    LineChart& chart = (*panels)[figure.name];
    chart.title = figure.name;
    chart.x.label = "seconds from run_start";
    chart.y = {.label = unit, .starts_at_zero = true};
    ChartLine line{.name = absl::StrCat("node ", node.node)};
    const std::vector<std::optional<double>> course =
        telemetry::CourseOf(series, figure.column, begin_ns, end_ns, parts);
    for (size_t i = 0; i < course.size(); ++i) {
      if (!course[i]) continue;
      const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(course.size());
      const auto at_ns =
          begin_ns + static_cast<int64_t>(share * static_cast<double>(end_ns - begin_ns));
      line.points.push_back({client::SecondsOfRun(run, series.header, at_ns), *course[i]});
    }
    chart.lines.push_back(std::move(line));
  }
}

void AddTelemetryCharts(const Context& context, const v1::Run& run, PageView* view) {
  const absl::StatusOr<std::vector<client::NodeTelemetry>> nodes =
      client::TelemetryOf(context.client, run);
  if (!nodes.ok() || nodes->empty()) return;
  Panels panels;
  Json rows = Json::array();
  for (const client::NodeTelemetry& node : *nodes)
    AddPanels(run, node, &panels, &rows);
  view->json["telemetry"] = rows;
  view->main.Raw("<h2 id=\"telemetry\">What its nodes did</h2>");
  if (const std::string clocks = client::ClocksText(*nodes); !clocks.empty())
    view->main.Raw("<p class=\"note\">Clocks: ").Text(clocks).Raw("</p>");
  size_t number = 0;
  for (auto& [name, chart] : panels) {
    chart.id = absl::StrCat("measure-", number++);
    chart.description = absl::StrCat("Means over parts of the run on ", chart.lines.size(),
                                     " nodes; the table below has the figures of the whole.");
    view->main.Raw("<h3>").Text(name).Raw("</h3>").Add(DrawLines(chart));
  }
  view->main.Raw("<details><summary>The numbers</summary>")
      .Add(TableHtml(
          {.caption = "From the first to the last sample",
           .columns = {{.title = "Measure", .member = "measure"},
                       {.title = "Node", .member = "node", .format = CellFormat::kInteger},
                       {.title = "Mean", .member = "mean", .format = CellFormat::kNumber},
                       {.title = "Highest", .member = "highest", .format = CellFormat::kNumber},
                       {.title = "Unit", .member = "unit"}},
           .rows = rows}));
  view->main.Raw("</details>");
}

void AddRunProfile(const Context& context, const v1::Run& run, PageView* view) {
  client::Cancellation never;
  // Runs that nobody watched have the lines of their log alone.
  if (run.event_count() == 0) return;
  const absl::StatusOr<Json> profile = client::LatestProfile(context.client, &never, run);
  if (!profile.ok() || !profile->is_object()) return;
  view->json["profile"] = *profile;
  Json rows = Json::array();
  for (const auto& [name, value] : profile->items())
    if (!value.is_structured()) rows.push_back({{"name", name}, {"value", value}});
  view->main.Raw("<h2 id=\"profile\">Profile</h2>")
      .Add(TableHtml(
          {.caption = "As its trainer counted, up to its last epoch",
           .columns = {{.title = "Figure", .member = "name"},
                       {.title = "Value", .member = "value", .format = CellFormat::kNumber}},
           .rows = rows}));
}

}  // namespace

void AddRunRecords(const Context& context, const v1::Run& run, PageView* view) {
  AddTouchRecords(context, run, view);
  AddCacheRecords(context, run, view);
  AddBytesRead(context, run, view);
  AddTelemetryCharts(context, run, view);
  AddRunProfile(context, run, view);
}

}  // namespace assay::web
