// Who did what, and who was refused.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "assay/v1/admin_service.pb.h"

#include "common/client/ids.h"
#include "common/client/resource_json.h"
#include "common/status.h"
#include "common/url.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

constexpr int kAuditPage = 200;

std::string ObjectPath(const Json& row) {
  const std::string object = TextOf(row, "object");
  if (absl::StartsWith(object, "e-")) return EntryPath(object);
  return absl::StartsWith(object, "r-") ? RunPath(object) : "";
}

Table AuditTable() {
  return {.caption = "Who did what, newest first",
          .empty = "Nothing in the audit answers to this.",
          .columns = {{.title = "Number",
                       .member = "seq",
                       .format = CellFormat::kInteger,
                       .path =
                           [](const Json& row) {
                             return absl::StrCat("/audit?row=", row["seq"].get<int64_t>());
                           }},
                      {.title = "When", .member = "time", .format = CellFormat::kTime},
                      {.title = "Who",
                       .member = "principal",
                       .path =
                           [](const Json& row) {
                             return absl::StrCat("/audit?who=",
                                                 EncodeUrl(TextOf(row, "principal")));
                           }},
                      {.title = "What", .member = "type"},
                      {.title = "To what", .member = "object", .path = ObjectPath},
                      {.title = "Outcome", .member = "outcome"},
                      {.title = "Detail", .member = "detail", .format = CellFormat::kWords}}};
}

Html FilterForm(const Request& request) {
  Html html;
  html.Raw("<form method=\"get\" class=\"wide\" role=\"search\"><label>Who<input name=\"who\"");
  html.Attribute("value", request.query.First("who"));
  html.Raw("></label><label>To what: e-42, r-901, a node's name, t-7<input name=\"of\"");
  html.Attribute("value", request.query.First("of"));
  return html.Raw("></label><button>Find</button></form>");
}

// The one row of that number, with the event as it was written.
absl::StatusOr<Response> RowPage(const Context& context, const Request& request, int64_t seq) {
  v1::ListAuditRequest list;
  list.set_after_seq(seq - 1);
  list.set_page_size(1);
  list.set_with_bodies(true);
  ASSIGN_OR_RETURN(const v1::ListAuditResponse response, context.client.Call(list));
  if (response.entries().empty() || response.entries(0).seq() != seq)
    return absl::NotFoundError(absl::StrCat("the audit has no row ", seq));
  PageView view{.title = absl::StrCat("Audit, row ", seq),
                .crumbs = {{"Results", "/"}, {"Audit", "/audit"}}};
  view.table = AuditTable();
  view.table.caption = "The row";
  view.table.rows.push_back(client::AuditJson(response.entries(0)));
  view.json = {{"items", view.table.rows}};
  view.main.Raw("<h1>").Text(view.title).Raw("</h1>").Add(TableHtml(view.table));
  const Json& body = MemberAt(view.table.rows[0], "body");
  view.main.Raw("<h2>What was written</h2><pre>").Text(body.dump(2)).Raw("</pre>");
  return Render(context, request, view);
}

}  // namespace

absl::StatusOr<Response> AuditPage(const Context& context, const Request& request) {
  int64_t number = 0;
  if (absl::SimpleAtoi(request.query.First("row"), &number) && number > 0)
    return RowPage(context, request, number);
  v1::ListAuditRequest list;
  if (absl::SimpleAtoi(request.query.First("before"), &number) && number > 0)
    list.set_after_seq(number);
  list.set_newest_first(true);
  list.set_page_size(kAuditPage);
  list.set_principal(std::string(request.query.First("who")));
  list.set_object(client::AuditObject(request.query.First("of")));
  ASSIGN_OR_RETURN(const v1::ListAuditResponse response, context.client.Call(list));
  PageView view{.title = "Audit", .crumbs = {{"Results", "/"}}};
  view.table = AuditTable();
  for (const v1::AuditEntry& entry : response.entries())
    view.table.rows.push_back(client::AuditJson(entry));
  view.json = {{"items", view.table.rows}};
  view.main.Raw(
      "<h1>Audit</h1><p class=\"sub\">Every change that somebody has asked for, and every call "
      "that was refused for who made it.</p>");
  view.main.Add(FilterForm(request)).Add(TableHtml(view.table)).Raw("<p class=\"actions\">");
  if (list.after_seq() > 0) view.main.Link(QueryWith(request, "before", ""), "Newest");
  if (response.entries_size() == kAuditPage)
    view.main.Link(QueryWith(request, "before", absl::StrCat(response.entries().rbegin()->seq())),
                   "Older");
  view.main.Raw("</p>");
  return Render(context, request, view);
}

}  // namespace assay::web
