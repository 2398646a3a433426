// The first page: the rounds, the newest entries, what is running.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/submission_service.pb.h"

#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/status.h"
#include "server/web/pages/entry_list.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

constexpr int64_t kNewestShown = 12;
constexpr int64_t kRunningShown = 50;

Table RoundsTable(const v1::ListRoundsResponse& rounds) {
  Table table{
      .caption = "Rounds that entries can be judged by",
      .columns = {
          {.title = "Round",
           .member = "id",
           .path = [](const Json& row) { return RoundPath(TextOf(row, "id")); }},
          {.title = "What it is", .member = "label", .format = CellFormat::kWords},
          {.title = "Benchmarks", .member = "benchmarks", .format = CellFormat::kWords},
          YesNoColumn("MLPerf result", "is_mlperf_result", false),
          {.title = "Results",
           .member = "results",
           .path =
               [](const Json& row) {
                 return absl::StrCat(RoundPath(TextOf(row, "id")), "/results");
               }},
          {.title = "Digest of its rules", .member = "digest", .format = CellFormat::kDigest}}};
  for (auto round = rounds.rounds().rbegin(); round != rounds.rounds().rend(); ++round) {
    Json row = client::RoundJson(*round);
    row["results"] = "results";
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table NewestTable(const std::vector<v1::Submission>& entries) {
  Table table{
      .caption = "Newest entries",
      .empty = "There is no entry that you may see.",
      .columns = {
          EntryColumn(),
          {.title = "Organisation", .member = "organization"},
          {.title = "System", .member = "system"},
          {.title = "Benchmark", .member = "benchmark"},
          {.title = "Round", .member = "round"},
          StateColumn(),
          {.title = "Nodes", .member = "nodes", .format = CellFormat::kInteger},
          {.title = "Time (min)", .member = "minutes", .format = CellFormat::kMinutes},
          {.title = "Models per min", .member = "models_per_minute", .format = CellFormat::kNumber},
          {.title = "Review", .draw = VerifiedBadge},
          {.title = "Created", .member = "created", .format = CellFormat::kTime}}};
  for (const v1::Submission& entry : entries)
    table.rows.push_back(EntryRow(entry));
  return table;
}

Table RunningTable(const std::vector<v1::Run>& runs) {
  Table table{.caption = "Runs that are going on",
              .empty = "Nothing is running.",
              .columns = {RunColumn(),
                          EntryColumn("entry"),
                          StateColumn(),
                          {.title = "Nodes", .member = "nodes", .format = CellFormat::kWords},
                          {.title = "Epochs", .member = "epochs", .format = CellFormat::kInteger},
                          {.title = "Quality", .member = "quality", .format = CellFormat::kNumber},
                          {.title = "Started", .member = "started", .format = CellFormat::kTime},
                          {.title = "Watch", .draw = [](const Json& row) {
                             Html html;
                             return html.Link(RunPath(TextOf(row, "id")) + "/live", "live");
                           }}}};
  for (const v1::Run& run : runs)
    table.rows.push_back(client::RunJson(run));
  return table;
}

}  // namespace

absl::StatusOr<Response> HomePage(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const v1::ListRoundsResponse rounds,
                   context.client.Call(v1::ListRoundsRequest()));
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> newest,
                   client::ListEntries(context.client, {}, kNewestShown));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> running,
                   client::ListRunsOf(context.client, "", "running", kRunningShown));
  PageView view{.title = "Results"};
  view.table = RoundsTable(rounds);
  const Table entries = NewestTable(newest);
  const Table runs = RunningTable(running);
  view.main.Raw(
      "<h1>Benchmark results, with their evidence</h1><p class=\"sub\">From each score it "
      "is one step to its runs, from a run to its log, and from each finding to the line "
      "and to what the rule says.</p>");
  view.main.Raw("<h2 id=\"rounds\">Rounds</h2>").Add(TableHtml(view.table));
  view.main.Raw("<h2 id=\"running\">Running now</h2>").Add(TableHtml(runs));
  view.main.Raw("<h2 id=\"newest\">Newest entries</h2>").Add(TableHtml(entries));
  view.main.Raw("<p class=\"actions\">").Link("/query", "All entries, by a filter").Raw("</p>");
  view.json = {{"rounds", view.table.rows}, {"running", runs.rows}, {"newest", entries.rows}};
  for (const v1::Round& round : rounds.rounds())
    view.rules.push_back({round.name(), round.digest()});
  return Render(context, request, view);
}

}  // namespace assay::web
