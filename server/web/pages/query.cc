// A question to the history: entries by a filter, in the order and with the columns of the URL.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/client/saved_views.h"
#include "common/status.h"
#include "server/web/pages/entry_list.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

// The address of a question of entries.
std::string PathOf(const v1::View& view) {
  std::string path = absl::StrCat("/query?filter=", EncodeUrl(view.filter()));
  if (!view.order_by().empty()) absl::StrAppend(&path, "&order=", EncodeUrl(view.order_by()));
  for (const std::string& column : view.columns())
    absl::StrAppend(&path, "&columns=", EncodeUrl(column));
  return path;
}

// Links to the saved views that this page can show: of entries, not of groups.
Html ViewLinks(const std::vector<v1::View>& views) {
  Html html;
  for (const v1::View& view : views) {
    if (view.kind() != "entry" || !view.group_by().empty() || !view.aggregates().empty()) continue;
    html.Raw("<li>").Link(PathOf(view), view.name());
    html.Raw(" by ").Text(view.author()).Raw("</li>");
  }
  if (html.empty()) return html;
  return Html().Raw("<h2>Saved views</h2><ul>").Add(html).Raw("</ul>");
}

}  // namespace

absl::StatusOr<Response> QueryPage(const Context& context, const Request& request) {
  const bool is_data = !request.format.empty();
  ASSIGN_OR_RETURN(const EntryAnswer answer,
                   FindEntries(context, {.filter = request.query.First("filter"),
                                         .order_by = request.query.First("order"),
                                         .limit = is_data ? 10'000 : kRowsAtFirst,
                                         .page_token = request.query.First("after")}));
  PageView view{.title = "Query", .crumbs = {{"Results", "/"}}};
  view.table = {.caption = "Entries",
                .empty = "No entry that you may see fits.",
                .columns = ChosenColumns(request),
                .rows = answer.rows};
  view.json = {{"filter", answer.filter},
               {"total", answer.total},
               {"hidden", answer.hidden},
               {"items", answer.rows}};
  Html& main = view.main;
  main.Raw("<h1>Query</h1><p class=\"sub\">Every question is an address: keep it, or send it on. ");
  main.Link("/help#filters", "How filters are written").Raw("</p>");
  main.Add(EntryListForm(request, {}));
  main.Add(AnswerNote(answer)).Add(TableHtml(view.table)).Add(PageLinks(request, answer));
  ASSIGN_OR_RETURN(const std::vector<v1::View> views, client::ListViews(context.client));
  main.Add(ViewLinks(views));
  const std::string filter = EncodeUrl(request.query.First("filter"));
  main.Raw("<p class=\"actions\">").Link(absl::StrCat("/scaling?filter=", filter), "Their scaling");
  main.Link(absl::StrCat("/history?filter=", filter), "Their history").Raw("</p>");
  main.Add(ScoreFootnotes("the round that each names"));
  return Render(context, request, view);
}

}  // namespace assay::web
