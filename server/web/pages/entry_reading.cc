#include "server/web/pages/entry_reading.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/client/artifacts.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/rules/registry.h"
#include "common/status.h"
#include "server/web/pages/entry_list.h"

namespace assay::web {

absl::StatusOr<EntryReading> ReadEntryReading(const Context& context, const std::string& id) {
  EntryReading reading;
  ASSIGN_OR_RETURN(reading.entry, client::GetEntry(context.client, id));
  ASSIGN_OR_RETURN(reading.runs, client::AllRunsOf(context.client, reading.entry.name()));
  reading.score = client::ScoreOfEntry(reading.entry, reading.runs);
  reading.json = EntryRow(reading.entry);
  client::AddScore(reading.score, &reading.json);
  client::AddTexts(reading.entry, reading.score, &reading.json);
  reading.run_rows = Json::array();
  for (size_t i = 0; i < reading.runs.size(); ++i) {
    Json row = client::RunJson(reading.runs[i]);
    row["part"] = reading.score.parts[i];
    reading.run_rows.push_back(std::move(row));
  }
  reading.rules = rules::FindRuleSet(reading.entry.spec().round());
  if (reading.rules != nullptr)
    reading.benchmark = reading.rules->FindBenchmark(reading.entry.spec().benchmark());
  return reading;
}

CourseCache::Course ReadCourse(const Context& context, const EntryReading& reading,
                               const v1::ArtifactRef& log) {
  const std::string key = reading.quality_key();
  if (CourseCache::Course known = context.courses.Find(log.sha256(), key)) return known;
  const absl::StatusOr<std::string> text = client::DownloadArtifact(context.client, log);
  if (!text.ok()) return nullptr;
  auto course = std::make_shared<const client::RunCourse>(client::ReadCourse(*text, key));
  context.courses.Put(log.sha256(), key, course);
  return course;
}

std::vector<RunReading> ReadCourses(const Context& context, const EntryReading& reading) {
  std::vector<size_t> order;
  for (const bool is_counted : {true, false})
    for (size_t i = 0; i < reading.runs.size(); ++i)
      if ((reading.score.parts[i] == "counts") == is_counted) order.push_back(i);
  order.resize(std::min(order.size(), kCoursesMax));
  std::sort(order.begin(), order.end());
  std::vector<RunReading> courses;
  for (const size_t i : order) {
    const v1::Run& run = reading.runs[i];
    const v1::ArtifactRef* const log = client::ResultFile(run);
    if (log == nullptr) continue;
    CourseCache::Course course = ReadCourse(context, reading, *log);
    if (course == nullptr) continue;
    courses.push_back({.id = client::ShortId(run.name()),
                       .part = reading.score.parts[i],
                       .course = std::move(course)});
  }
  return courses;
}

Table RunsTable(const EntryReading& reading) {
  return {
      .caption = "Runs, and what became of each in the score",
      .empty = "No run has been queued yet.",
      .columns = {RunColumn(),
                  {.title = "In the score", .member = "part"},
                  {.title = "Time (s)", .member = "seconds", .format = CellFormat::kSeconds},
                  {.title = "Epochs", .member = "epochs", .format = CellFormat::kInteger},
                  {.title = "Quality", .member = "quality", .format = CellFormat::kNumber},
                  YesNoColumn("Converged", "converged"),
                  YesNoColumn("Log complies", "compliant"),
                  {.title = "First touch after run_start (ms)",
                   .member = "touch_after_run_start_ms",
                   .format = CellFormat::kNumber},
                  {.title = "Staging (ms)", .member = "staging_ms", .format = CellFormat::kInteger},
                  {.title = "Seed", .member = "seed"},
                  {.title = "Log",
                   .draw =
                       [](const Json& row) {
                         Html html;
                         if (MemberAt(row, "artifacts").empty())
                           return html.Raw("<span class=\"none\">–</span>");
                         return html.Link(RunPath(TextOf(row, "id")) + "/log", "log");
                       }}},
      .rows = reading.run_rows};
}

Html ScoreSection(const EntryReading& reading) {
  Html html;
  const Json& json = reading.json;
  html.Raw("<p class=\"big\">");
  if (reading.entry.has_score_minutes()) {
    html.Raw("<strong>").Text(CellText(json["score_minutes"], CellFormat::kMinutes));
    html.Raw("</strong><span>min to solution</span>");
  } else if (reading.entry.has_throughput()) {
    html.Raw("<strong>").Text(CellText(MemberAt(json, "models_per_minute"), CellFormat::kNumber));
    html.Raw("</strong><span>models per min</span>");
  } else {
    html.Raw("<strong>–</strong><span>no score</span>");
  }
  html.Add(VerifiedBadge(json)).Add(StateBadge(TextOf(json, "state"))).Raw("</p>");
  if (const std::string not_mlperf = client::NotMlperfText(reading.entry); !not_mlperf.empty())
    html.Raw("<p class=\"warn\">").Text(not_mlperf).Raw("</p>");
  html.Add(
      FactsHtml(json, {{.title = "How it was computed", .member = "state_reason"},
                       {.title = "Interval", .member = "interval_text"},
                       {.title = "Window of runs", .member = "window_text"},
                       {.title = "So far", .member = "preview_text"},
                       {.title = "Attempts", .member = "attempts_text"},
                       {.title = "Beside the reference's convergence", .member = "reference_text"},
                       {.title = "Clocks", .member = "clock_text"},
                       {.title = "First touch of the data", .member = "touch_text"},
                       {.title = "Energy to solution", .member = "energy_text"},
                       {.title = "Node minutes (unofficial)",
                        .member = "unofficial_node_minutes",
                        .format = CellFormat::kNumber}}));
  return html;
}

Json EntryFindings(const EntryReading& reading) {
  Json rows = Json::array();
  for (const Json& finding : MemberAt(reading.json, "findings"))
    rows.push_back(finding);
  for (const Json& run : reading.run_rows)
    for (Json& finding : FindingRows(run))
      rows.push_back(std::move(finding));
  return rows;
}

}  // namespace assay::web
