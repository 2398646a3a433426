// The nodes and what they do, and what waits for them.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "assay/v1/submission_service.pb.h"

#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/status.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

constexpr int kNodesShown = 1000;
constexpr int64_t kWaitingShown = 50;

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

}  // namespace assay::web
