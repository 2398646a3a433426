// The nodes and what they do, and the trail of who did what.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/submission_service.pb.h"

#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/printable.h"
#include "common/status.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

constexpr int kNodesShown = 1000;
constexpr int64_t kWaitingShown = 50;
constexpr int kAuditPage = 200;
constexpr size_t kBodyShown = 400;  // code points

Table NodesTable(const v1::ListWorkersResponse& workers) {
  Table table{
      .caption = "Nodes",
      .empty = "There is no node that you may see.",
      .columns = {{.title = "Node", .member = "id"},
                  StateColumn(),
                  {.title = "Why", .member = "state_reason", .format = CellFormat::kWords},
                  {.title = "Run",
                   .member = "run",
                   .path = [](const Json& row) { return RunPath(TextOf(row, "run")); }},
                  {.title = "Host", .member = "host"},
                  {.title = "Processor", .member = "cpu_model"},
                  {.title = "Cores", .member = "cores", .format = CellFormat::kInteger},
                  {.title = "Memory", .member = "memory_bytes", .format = CellFormat::kBytes},
                  {.title = "Accelerators",
                   .member = "accelerators",
                   .format = CellFormat::kInteger},
                  {.title = "Model", .member = "accelerator_model"},
                  {.title = "Clock off by (us)",
                   .member = "clock_offset_us",
                   .format = CellFormat::kInteger},
                  {.title = "known to (us)",
                   .member = "clock_offset_uncertainty_us",
                   .format = CellFormat::kInteger},
                  {.title = "Last heard of", .member = "last_seen", .format = CellFormat::kTime},
                  {.title = "Version", .member = "version"}},
      .row_id = [](const Json& row) { return TextOf(row, "id"); }};
  for (const v1::Worker& worker : workers.workers())
    table.rows.push_back(client::NodeJson(worker));
  return table;
}

// What waits, oldest first, with the coordinator's reason for each.
absl::StatusOr<Table> WaitingTable(const Context& context) {
  Table table{
      .caption = "Entries that wait or run",
      .empty = "Nothing waits.",
      .columns = {EntryColumn(),
                  {.title = "Organisation", .member = "organization"},
                  {.title = "Benchmark", .member = "benchmark"},
                  StateColumn(),
                  {.title = "Place in the queue",
                   .member = "queue_position",
                   .format = CellFormat::kInteger},
                  {.title = "Why", .member = "explanation", .format = CellFormat::kWords},
                  {.title = "What would help", .member = "remedy", .format = CellFormat::kWords}}};
  for (const char* const state : {"RUNNING", "OPEN"}) {
    v1::ListSubmissionsRequest request;
    request.set_state(state);
    ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries,
                     client::ListEntries(context.client, request, kWaitingShown));
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      Json row = client::EntryJson(*entry);
      v1::ExplainSubmissionRequest explain;
      explain.set_name(entry->name());
      // Whoever may see an entry need not be told why it waits.
      if (const auto why = context.client.Call(explain); why.ok()) {
        row["explanation"] = why->explanation();
        row["remedy"] = why->remedy();
        if (why->queue_position() > 0) row["queue_position"] = why->queue_position();
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

// What was asked for may be long, as imports are: the page's data has all of it.
Html BodyStart(const Json& row) {
  return Html().Text(Shortened(CellText(MemberAt(row, "body"), CellFormat::kWords), kBodyShown));
}

}  // namespace

absl::StatusOr<Response> FleetPage(const Context& context, const Request& request) {
  PageView view{.title = "Fleet", .crumbs = {{"Results", "/"}}};
  v1::ListWorkersRequest list;
  list.set_page_size(kNodesShown);
  const absl::StatusOr<v1::ListWorkersResponse> workers = context.client.Call(list);
  view.main.Raw(
      "<h1>Fleet</h1><p class=\"sub\">Nodes, their clocks beside the coordinator's, and "
      "what waits for them.</p>");
  if (workers.ok()) {
    view.table = NodesTable(*workers);
    view.main.Raw("<h2 id=\"nodes\">Nodes</h2>").Add(TableHtml(view.table));
  } else if (absl::IsPermissionDenied(workers.status())) {
    view.main.Raw("<p class=\"none\">The nodes are shown to those who have signed in.</p>");
  } else {
    return workers.status();
  }
  ASSIGN_OR_RETURN(const Table waiting, WaitingTable(context));
  view.main.Raw("<h2 id=\"queue\">Queue</h2>").Add(TableHtml(waiting));
  view.json = {{"nodes", view.table.rows}, {"queue", waiting.rows}};
  return Render(context, request, view);
}

absl::StatusOr<Response> AuditPage(const Context& context, const Request& request) {
  int64_t after = 0;
  if (!absl::SimpleAtoi(request.query.First("after"), &after)) after = 0;
  v1::ListAuditRequest list;
  list.set_after_seq(after);
  list.set_page_size(kAuditPage);
  ASSIGN_OR_RETURN(const v1::ListAuditResponse response, context.client.Call(list));
  PageView view{.title = "Audit", .crumbs = {{"Results", "/"}}};
  view.table = {.caption = "Who did what, oldest first",
                .empty = "Nothing follows.",
                .columns = {{.title = "Number", .member = "seq", .format = CellFormat::kInteger},
                            {.title = "When", .member = "time", .format = CellFormat::kTime},
                            {.title = "Who", .member = "principal"},
                            {.title = "What", .member = "type"},
                            {.title = "With", .member = "body", .draw = BodyStart}}};
  for (const v1::AuditEntry& entry : response.entries())
    view.table.rows.push_back(client::AuditJson(entry));
  view.json = {{"items", view.table.rows}};
  view.main.Raw("<h1>Audit</h1><p class=\"sub\">Every change that somebody has asked for.</p>");
  view.main.Add(TableHtml(view.table)).Raw("<p class=\"actions\">");
  if (after > 0) view.main.Link(QueryWith(request, "after", ""), "First page");
  if (response.entries_size() == kAuditPage)
    view.main.Link(QueryWith(request, "after", absl::StrCat(response.entries().rbegin()->seq())),
                   "Next page");
  view.main.Raw("</p>");
  return Render(context, request, view);
}

}  // namespace assay::web
