// A run while it goes on: how far it is, and what comes, as it comes.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/client/cancellation.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/client/watch.h"
#include "common/status.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

constexpr int64_t kLastShown = 100;

}  // namespace

absl::StatusOr<Response> RunLivePage(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const v1::Run run,
                   client::GetRun(context.client, request.parameters.First("run")));
  PageView view{.json = client::RunJson(run)};
  const std::string id = TextOf(view.json, "id");
  const std::string entry = TextOf(view.json, "entry");
  view.title = absl::StrCat("Run ", id, ", live");
  view.crumbs = {{"Results", "/"}, {entry, EntryPath(entry)}, {id, RunPath(id)}};
  client::Cancellation never;
  int64_t last = std::max<int64_t>(0, run.event_count() - kLastShown);
  RETURN_IF_ERROR(client::ForEachRunEvent(context.client, &never,
                                          {.run = run.name(), .after_seq = last, .follow = false},
                                          [&](const v1::RunEvent& event) {
                                            if (std::ssize(view.table.rows) >= kLastShown) return;
                                            view.table.rows.push_back(client::RunEventJson(event));
                                            last = event.seq();
                                          }));
  view.table.columns = {
      {.member = "seq"}, {.member = "kind"}, {.member = "line"}, {.member = "text"}};
  Html& main = view.main;
  main.Raw("<h1>Run ").Text(id).Raw(", live ").Add(StateBadge(TextOf(view.json, "state")));
  main.Raw("</h1>").Add(FactsHtml(
      view.json, {{.title = "Epochs", .member = "epochs", .format = CellFormat::kInteger},
                  {.title = "Quality so far", .member = "quality", .format = CellFormat::kNumber},
                  {.title = "Nodes", .member = "nodes", .format = CellFormat::kWords},
                  {.title = "Started", .member = "started", .format = CellFormat::kTime},
                  {.title = "Ended", .member = "ended", .format = CellFormat::kTime},
                  {.title = "Findings so far", .draw = [id](const Json& row) {
                     Html html;
                     const size_t count = MemberAt(row, "findings").size();
                     return html.Link(RunPath(id) + "#findings", Counted(count, "finding"));
                   }}}));
  if (client::IsEnded(run.state())) {
    main.Raw("<p>It has ended: ").Link(RunPath(id), "its page").Raw(" has everything.</p>");
  } else {
    main.Raw(
        "<p class=\"note\">What comes is added below. Without scripts, load the page anew.</p>");
  }
  main.Raw(
      "<h2 id=\"lines\">Last lines</h2><div class=\"scroll log\" tabindex=\"0\" role=\"region\"");
  main.Raw(" aria-label=\"Last lines\"><ol class=\"lines\"");
  if (!client::IsEnded(run.state()))
    main.Attribute("data-live", RunPath(id) + "/live").Attribute("data-after", absl::StrCat(last));
  main.Raw(">");
  for (const Json& event : view.table.rows)
    main.Raw("<li>").Text(TextOf(event, "text")).Raw("</li>");
  main.Raw("</ol></div>");
  view.json["events"] = view.table.rows;
  return Render(context, request, view);
}

}  // namespace assay::web
