// The page of a run: facts, what its nodes witnessed and measured, its events, its files.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/client/artifacts.h"
#include "common/client/cache_records.h"
#include "common/client/cancellation.h"
#include "common/client/energy.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/client/run_bytes.h"
#include "common/client/run_course.h"
#include "common/client/run_profile.h"
#include "common/client/touch_records.h"
#include "common/client/watch.h"
#include "common/rules/registry.h"
#include "common/status.h"
#include "common/url.h"
#include "server/web/chart.h"
#include "server/web/pages/entry_reading.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"
#include "server/web/pages/run_sections.h"

namespace assay::web {
namespace {

constexpr int64_t kEventsPerPage = 200;

std::vector<TableColumn> RunFactColumns() {
  return {{.title = "Entry",
           .member = "entry",
           .path = [](const Json& run) { return EntryPath(TextOf(run, "entry")); }},
          {.title = "Number within it", .member = "number", .format = CellFormat::kInteger},
          {.title = "Time to solution (s), by its log",
           .member = "seconds",
           .format = CellFormat::kSeconds},
          {.title = "by its node's clock (s)",
           .member = "arrival_seconds",
           .format = CellFormat::kSeconds},
          {.title = "by the coordinator's (s)",
           .member = "coordinator_seconds",
           .format = CellFormat::kSeconds},
          {.title = "off by at most (s)",
           .member = "coordinator_error_seconds",
           .format = CellFormat::kNumber},
          {.title = "Reached the target", .member = "converged", .format = CellFormat::kYesNo},
          {.title = "Log complies", .member = "compliant", .format = CellFormat::kYesNo},
          {.title = "Quality at the end", .member = "quality", .format = CellFormat::kNumber},
          {.title = "Epochs", .member = "epochs", .format = CellFormat::kInteger},
          {.title = "Global batch (samples)",
           .member = "global_batch_size",
           .format = CellFormat::kInteger},
          {.title = "Units that trained it",
           .member = "instance_scale",
           .format = CellFormat::kInteger},
          {.title = "Seed", .member = "seed"},
          {.title = "Nodes", .member = "nodes", .format = CellFormat::kWords},
          {.title = "Machines", .member = "node_names", .format = CellFormat::kWords},
          {.title = "Nodes of", .member = "nodes_of"},
          {.title = "Allocation", .member = "allocation"},
          {.title = "Had the dataset in their cache", .member = "cached_nodes"},
          {.title = "First touch after run_start (ms)",
           .member = "touch_after_run_start_ms",
           .format = CellFormat::kNumber},
          {.title = "Strength of the first touch", .member = "touch_assurance"},
          {.title = "Staging (ms)", .member = "staging_ms", .format = CellFormat::kInteger},
          {.title = "Created", .member = "created", .format = CellFormat::kTime},
          {.title = "Started", .member = "started", .format = CellFormat::kTime},
          {.title = "Ended", .member = "ended", .format = CellFormat::kTime},
          {.title = "Exit code", .member = "exit_code"}};
}

Table FilesTable(const Json& run) {
  const std::string id = TextOf(run, "id");
  return {.caption = "Files that it left, kept byte for byte",
          .empty = "It has left no file yet.",
          .columns = {{.title = "File",
                       .member = "file",
                       .path =
                           [id](const Json& row) {
                             return absl::StrCat(RunPath(id), "/files/",
                                                 EncodeUrl(TextOf(row, "file")));
                           }},
                      {.title = "Size", .member = "bytes", .format = CellFormat::kBytes},
                      {.title = "SHA-256", .member = "sha256", .format = CellFormat::kCode}},
          .rows = MemberAt(run, "artifacts").is_array() ? run["artifacts"] : Json::array()};
}

std::string StampText(int64_t at_us) {
  return at_us == 0
             ? ""
             : absl::FormatTime("%H:%M:%E6S", absl::FromUnixMicros(at_us), absl::UTCTimeZone());
}

Table EventsTable(const std::string& run) {
  return {.caption = "Events of its first node, in order",
          .empty = "It has no events.",
          .columns = {{.title = "Number", .member = "seq", .format = CellFormat::kInteger},
                      {.title = "Kind", .member = "kind"},
                      {.title = "Line",
                       .member = "line",
                       .format = CellFormat::kInteger,
                       .path =
                           [run](const Json& row) {
                             const int64_t line = row.value("line", int64_t{0});
                             return line > 0 ? LogPath(run, line) : "";
                           }},
                      {.title = "Node's wall clock", .member = "wall"},
                      {.title = "Its monotonic clock (ns)", .member = "mono_ns"},
                      {.title = "Coordinator's clock", .member = "received"},
                      {.title = "Text", .member = "text", .format = CellFormat::kWords}}};
}

// A page of events after `after`; the number of the last one of it, or 0 if none follow.
absl::StatusOr<int64_t> ReadEvents(const Context& context, const v1::Run& run, int64_t after,
                                   Table* table) {
  client::Cancellation enough;
  int64_t last = 0;
  const absl::Status status = client::ForEachRunEvent(
      context.client, &enough, {.run = run.name(), .after_seq = after, .follow = false},
      [&](const v1::RunEvent& event) {
        if (std::ssize(table->rows) >= kEventsPerPage) {
          last = after + kEventsPerPage;
          return enough.Raise();
        }
        Json row = client::RunEventJson(event);
        row["wall"] = StampText(event.wall_us());
        row["received"] = StampText(event.receive_us());
        if (event.wall_us() == 0) row.erase("mono_ns");
        table->rows.push_back(std::move(row));
      });
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  return last;
}

absl::Status AddEvents(const Context& context, const Request& request, const v1::Run& run,
                       PageView* view) {
  int64_t after = 0;
  if (!absl::SimpleAtoi(request.query.First("after"), &after)) after = 0;
  Table events = EventsTable(client::ShortId(run.name()));
  ASSIGN_OR_RETURN(const int64_t last,
                   ReadEvents(context, run, std::max<int64_t>(after, 0), &events));
  view->main.Raw(
      "<h2 id=\"events\">Events</h2><p class=\"note\">Each has the node's two clocks and "
      "that of the coordinator when it was committed. An imported run has the lines of "
      "its log alone.</p>");
  view->main.Add(TableHtml(events)).Raw("<p class=\"actions\">");
  if (after > 0) view->main.Link(QueryWith(request, "after", "") + "#events", "First events");
  if (last > 0)
    view->main.Link(QueryWith(request, "after", absl::StrCat(last)) + "#events", "Next events");
  view->main.Raw("</p>");
  view->json["events"] = events.rows;
  view->table = std::move(events);
  return absl::OkStatus();
}

// The curve and the phases of one run, as those of its entry.
void AddCourse(const Context& context, const v1::Run& run, const v1::Submission& entry,
               PageView* view) {
  const v1::ArtifactRef* const log = client::ResultFile(run);
  if (log == nullptr) return;
  EntryReading reading{.entry = entry};
  reading.rules = rules::FindRuleSet(entry.spec().round());
  if (reading.rules != nullptr)
    reading.benchmark = reading.rules->FindBenchmark(entry.spec().benchmark());
  CourseCache::Course course = ReadCourse(context, reading, *log);
  if (course == nullptr) return;
  const std::vector<RunReading> courses = {
      {.id = client::ShortId(run.name()), .course = std::move(course)}};
  view->json["course"] = client::CourseJson(*courses[0].course);
  view->main.Raw("<h2 id=\"convergence\">Convergence</h2>");
  view->main.Add(DrawLines(ConvergenceChart(reading, courses, "seconds")));
  Html points;
  points.Add(TableHtml(
      {.caption = "Each evaluation",
       .empty = "Its log has no evaluation.",
       .columns = {{.title = "Epoch", .member = "epoch", .format = CellFormat::kNumber},
                   {.title = "Samples", .member = "samples", .format = CellFormat::kInteger},
                   {.title = "Time (s)", .member = "seconds", .format = CellFormat::kSeconds},
                   {.title = "Quality", .member = "quality", .format = CellFormat::kNumber},
                   {.title = "Line of the log",
                    .member = "line",
                    .format = CellFormat::kInteger,
                    .path =
                        [id = courses[0].id](const Json& row) {
                          return LogPath(id, row.value("line", int64_t{0}));
                        }}},
       .rows = view->json["course"]["points"]}));
  view->main.Raw("<details><summary>The numbers</summary>").Add(points).Raw("</details>");
  view->main.Add(PhasesSection(reading, courses));
}

}  // namespace

absl::StatusOr<Response> RunPage(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const v1::Run run,
                   client::GetRun(context.client, request.parameters.First("run")));
  ASSIGN_OR_RETURN(const v1::Submission entry,
                   client::GetEntry(context.client, client::ShortId(run.submission())));
  PageView view{.json = client::RunJson(run)};
  const std::string id = TextOf(view.json, "id");
  const std::string entry_id = TextOf(view.json, "entry");
  view.title = absl::StrCat("Run ", id);
  view.crumbs = {{"Results", "/"},
                 {entry.spec().round(), RoundPath(entry.spec().round())},
                 {entry_id, EntryPath(entry_id)}};
  view.rules = {{entry.spec().round(), entry.rules_digest()}};
  view.main.Raw("<h1>Run ").Text(id).Raw(" ").Add(StateBadge(TextOf(view.json, "state")));
  view.main.Raw("</h1><p class=\"sub\">").Text(entry.spec().benchmark()).Raw(" on ");
  view.main.Text(entry.spec().system()).Raw(", ").Text(entry.spec().organization());
  view.main.Raw("</p>");
  if (const std::string why = TextOf(view.json, "state_reason"); !why.empty())
    view.main.Raw("<p>").Text(why).Raw("</p>");
  view.main.Raw("<p class=\"actions\">").Link(RunPath(id) + "/log", "Its log");
  view.main.Link(RunPath(id) + "/live", "Live").Link("#events", "Events").Raw("</p>");
  view.main.Add(FactsHtml(view.json, RunFactColumns()));
  if (const std::string energy = client::EnergyText(run); !energy.empty())
    view.main.Raw("<p>Energy to solution: ").Text(energy).Raw("</p>");
  view.main.Raw("<h2 id=\"findings\">Findings</h2>").Add(FindingsHtml(FindingRows(view.json)));
  AddCourse(context, run, entry, &view);
  AddRunRecords(context, run, &view);
  view.main.Raw("<h2 id=\"files\">Files</h2>").Add(TableHtml(FilesTable(view.json)));
  RETURN_IF_ERROR(AddEvents(context, request, run, &view));
  return Render(context, request, view);
}

absl::StatusOr<Response> RunFilePage(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const v1::Run run,
                   client::GetRun(context.client, request.parameters.First("run")));
  std::string name = request.parameters.First("file");
  if (!request.format.empty()) absl::StrAppend(&name, ".", request.format);
  for (const v1::ArtifactRef& file : run.artifacts()) {
    if (file.file_name() != name) continue;
    ASSIGN_OR_RETURN(std::string bytes, client::DownloadArtifact(context.client, file));
    // Never shown within the site: nobody knows what it holds.
    return Response{.content_type = "application/octet-stream",
                    .body = std::move(bytes),
                    .headers = {{"Content-Disposition",
                                 absl::StrCat("attachment; filename*=UTF-8''", EncodeUrl(name))}}};
  }
  return absl::NotFoundError(absl::StrCat(client::ShortId(run.name()), " has no file ", name));
}

}  // namespace assay::web
