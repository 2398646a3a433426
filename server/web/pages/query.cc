// A question to the history. Entries are listed as rounds list them; other kinds, groups and
// columns as the history has them (query_rows.cc).

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/client/saved_views.h"
#include "common/status.h"
#include "common/url.h"
#include "server/web/pages/entry_list.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"
#include "server/web/pages/query_rows.h"

namespace assay::web {
namespace {

// Whether the list of entries has all that the question asks for.
bool IsEntryList(const v1::View& question) {
  if (question.kind() != "entry" || !question.group_by().empty() || !question.aggregates().empty())
    return false;
  return std::ranges::all_of(question.columns(), [](const std::string& name) {
    return std::ranges::any_of(
        EntryColumns(), [&name](const EntryListColumn& column) { return column.name == name; });
  });
}

void AddHidden(Markup name, const std::string& value, Html* html) {
  html->Raw("<input type=\"hidden\" name=\"").Raw(name).Raw("\"").Attribute("value", value);
  html->Raw(">");
}

// For who has signed in: the question under a name, as 'assay query --save' keeps it.
Html SaveForm(const Visitor& visitor, const v1::View& question) {
  Html html;
  if (!visitor.is_signed_in()) return html;
  html.Raw("<form method=\"post\" action=\"/query\"><label>Keep it as");
  html.Raw("<input name=\"name\" required maxlength=\"64\"></label>");
  html.Raw("<label class=\"check\"><input type=\"checkbox\" name=\"shared\" value=\"1\">");
  html.Raw("Share it</label>");
  AddHidden("form_token", visitor.form_token, &html);
  AddHidden("kind", question.kind(), &html);
  AddHidden("filter", question.filter(), &html);
  AddHidden("order", question.order_by(), &html);
  for (const std::string& column : question.columns())
    AddHidden("columns", column, &html);
  for (const std::string& field : question.group_by())
    AddHidden("group_by", field, &html);
  for (const std::string& aggregate : question.aggregates())
    AddHidden("aggregate", aggregate, &html);
  return html.Raw("<button>Save</button></form>");
}

// What leads on from a question: to the saved ones, to a name for this one, to charts of entries.
absl::StatusOr<Html> QuestionLinks(const Context& context, const v1::View& question) {
  Html html;
  if (question.kind() == "entry") {
    const std::string filter = EncodeUrl(question.filter());
    html.Raw("<p class=\"actions\">").Link(absl::StrCat("/scaling?filter=", filter), "Scaling");
    html.Link(absl::StrCat("/history?filter=", filter), "History");
    html.Link(absl::StrCat("/query?group_by=benchmark,round&aggregate=count,p50(minutes)&filter=",
                           filter),
              "Groups and statistics");
    html.Raw("</p>");
  }
  ASSIGN_OR_RETURN(const std::vector<v1::View> views, client::ListViews(context.client));
  if (views.empty() && !context.visitor.is_signed_in()) return html;
  html.Raw("<h2 id=\"views\">Saved views</h2>");
  if (!views.empty()) html.Raw("<ul>");
  for (const v1::View& view : views) {
    html.Raw("<li>").Link(client::QueryPath(view), view.name());
    html.Raw(" by ").Text(view.author()).Raw("</li>");
  }
  if (!views.empty()) html.Raw("</ul>");
  return html.Add(SaveForm(context.visitor, question));
}

// A saved question is shown: its address is what was to be kept.
absl::StatusOr<Response> SaveQuestion(const Context& context, const Request& request) {
  v1::SaveViewRequest save;
  ASSIGN_OR_RETURN(*save.mutable_view(), QuestionOf(request.form));
  save.mutable_view()->set_name(request.form.First("name"));
  save.mutable_view()->set_is_shared(!request.form.First("shared").empty());
  ASSIGN_OR_RETURN(const v1::View view, context.client.Call(save));
  return Redirect(client::QueryPath(view));
}

absl::StatusOr<Response> EntryListPage(const Context& context, const Request& request,
                                       const Html& links) {
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
  view.json = {{"kind", "entry"},
               {"filter", answer.filter},
               {"total", answer.total},
               {"hidden", answer.hidden},
               {"items", answer.rows}};
  Html& main = view.main;
  main.Add(QueryHead("entry")).Add(EntryListForm(request, {})).Add(AnswerNote(answer));
  main.Add(TableHtml(view.table)).Add(PageLinks(request, answer)).Add(links);
  main.Add(ScoreFootnotes("the round that each names"));
  return Render(context, request, view);
}

}  // namespace

absl::StatusOr<Response> QueryPage(const Context& context, const Request& request) {
  if (request.method == "POST") return SaveQuestion(context, request);
  ASSIGN_OR_RETURN(const v1::View question, QuestionOf(request.query));
  ASSIGN_OR_RETURN(const Html links, QuestionLinks(context, question));
  return IsEntryList(question) ? EntryListPage(context, request, links)
                               : RowsPage(context, request, question, links);
}

}  // namespace assay::web
