// The sections of an entry's page that its logs tell: convergence and phases.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "server/web/chart.h"
#include "server/web/frame.h"
#include "server/web/pages/entry_reading.h"

namespace assay::web {
namespace {

using client::PhaseTimes;
using client::QualityPoint;

std::optional<double> AlongAxis(const QualityPoint& point, const std::string& axis) {
  if (axis == "samples") return point.samples;
  if (axis == "seconds") return point.seconds;
  return point.epoch;
}

Table PointsTable(const std::vector<RunReading>& courses) {
  Table table{
      .caption = "Each evaluation",
      .columns = {RunColumn("run"),
                  {.title = "Epoch", .member = "epoch", .format = CellFormat::kNumber},
                  {.title = "Samples", .member = "samples", .format = CellFormat::kInteger},
                  {.title = "Time (s)", .member = "seconds", .format = CellFormat::kSeconds},
                  {.title = "Quality", .member = "quality", .format = CellFormat::kNumber},
                  {.title = "Line of the log",
                   .member = "line",
                   .format = CellFormat::kInteger,
                   .path = [](const Json& row) {
                     return LogPath(TextOf(row, "run"), row.value("line", int64_t{0}));
                   }}}};
  for (const RunReading& run : courses)
    for (const Json& point : client::CourseJson(*run.course)["points"]) {
      Json row = {{"run", run.id}};
      row.update(point);
      table.rows.push_back(std::move(row));
    }
  return table;
}

std::vector<double> OnTheClock(const PhaseTimes& times) {
  return {times.staging, times.training, times.evaluation, times.rest};
}

}  // namespace

LineChart ConvergenceChart(const EntryReading& reading, const std::vector<RunReading>& courses,
                           const std::string& axis) {
  LineChart chart{.id = "convergence",
                  .title = absl::StrCat("Quality by ", axis),
                  .x = {.label = axis == "seconds"   ? "seconds from run_start"
                                 : axis == "samples" ? "samples trained on"
                                                     : "epoch",
                        .starts_at_zero = axis != "epoch"},
                  .y = {.label = reading.quality_key()}};
  if (reading.benchmark != nullptr) {
    chart.target = reading.benchmark->target;
    chart.target_name = absl::StrFormat("target %g", reading.benchmark->target);
  }
  chart.description = absl::StrCat(
      courses.size(), " runs; the table below has the numbers. ",
      chart.target ? absl::StrCat("A run is done when it reaches the ", chart.target_name, ".")
                   : std::string("The round's target is not known here."));
  for (const RunReading& run : courses) {
    ChartLine line{.name = absl::StrCat(run.id, run.part.empty() ? "" : ": ", run.part),
                   .path = RunPath(run.id)};
    for (const QualityPoint& point : run.course->points)
      if (const std::optional<double> x = AlongAxis(point, axis))
        line.points.push_back({*x, point.quality});
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

Html ConvergenceSection(const Request& request, const EntryReading& reading,
                        const std::vector<RunReading>& courses) {
  Html html;
  html.Raw("<h2 id=\"convergence\">Convergence</h2>");
  if (courses.empty()) return html.Raw("<p class=\"none\">No run has left a log yet.</p>");
  std::string axis = request.query.First("x");
  if (axis != "samples" && axis != "seconds") axis = "epoch";
  html.Add(Tabs(request, "Horizontal axis", "x", axis,
                {{"epoch", "by epoch"}, {"samples", "by samples"}, {"seconds", "by seconds"}}));
  html.Add(DrawLines(ConvergenceChart(reading, courses, axis)));
  if (courses.size() < reading.runs.size())
    html.Raw("<p class=\"note\">Drawn are ").Text(Counted(courses.size(), "run")).Raw(" of ");
  if (courses.size() < reading.runs.size())
    html.Text(absl::StrCat(reading.runs.size())).Raw("; each run has a page of its own.</p>");
  html.Raw("<details><summary>The numbers</summary>").Add(TableHtml(PointsTable(courses)));
  return html.Raw("</details>");
}

BarChart PhasesChart(const std::vector<RunReading>& courses) {
  BarChart chart{.id = "phases",
                 .title = "Where the time of each run went",
                 .description =
                     "Stacked bars: left of zero what was before run_start, right of it "
                     "what was on the clock. The table below has the numbers.",
                 .unit = "seconds from run_start",
                 .before_names = {"initialisation", "staging off the clock"},
                 .names = {"staging on the clock", "training", "evaluation", "rest"}};
  for (const RunReading& run : courses) {
    if (!run.course->phases) continue;
    const PhaseTimes& times = *run.course->phases;
    chart.bars.push_back({.name = run.id,
                          .path = RunPath(run.id),
                          .before = {times.init, times.untimed_staging},
                          .values = OnTheClock(times)});
  }
  return chart;
}

Html PhasesSection(const EntryReading& /*reading*/, const std::vector<RunReading>& courses) {
  Html html;
  html.Raw("<h2 id=\"phases\">Phases</h2>");
  const BarChart chart = PhasesChart(courses);
  if (chart.bars.empty())
    return html.Raw("<p class=\"none\">No log has both run_start and run_stop.</p>");
  html.Add(DrawBars(chart));
  const auto seconds = [](const char* title, const char* member) {
    return TableColumn{.title = title, .member = member, .format = CellFormat::kSeconds};
  };
  Table table{
      .caption = "Seconds, by the log of each run",
      .columns = {RunColumn("run"), seconds("Initialisation", "init_seconds"),
                  seconds("Staging off the clock", "untimed_staging_seconds"),
                  seconds("Staging on the clock", "staging_seconds"),
                  seconds("Training", "training_seconds"),
                  seconds("Evaluation", "evaluation_seconds"), seconds("Rest", "rest_seconds"),
                  seconds("From run_start to run_stop", "total_seconds")}};
  for (const RunReading& run : courses) {
    if (!run.course->phases) continue;
    Json row = {{"run", run.id}};
    row.update(client::CourseJson(*run.course)["phases"]);
    table.rows.push_back(std::move(row));
  }
  html.Raw("<details><summary>The numbers</summary>").Add(TableHtml(table));
  return html.Raw("</details>");
}

}  // namespace assay::web
