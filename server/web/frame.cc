#include "server/web/frame.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/url.h"
#include "server/web/assets.h"

namespace assay::web {
namespace {

struct Section {
  const char* path;
  const char* name;
};
constexpr Section kSections[] = {
    {"/", "Results"},    {"/query", "Query"}, {"/scaling", "Scaling"}, {"/history", "History"},
    {"/fleet", "Fleet"}, {"/rules", "Rules"}, {"/help", "Help"}};

void AddHeader(const Visitor& visitor, absl::string_view path, Html* html) {
  html->Raw("<header><nav aria-label=\"Site\"><a class=\"home\" href=\"/\">Assay</a>");
  for (const Section& section : kSections) {
    const bool is_here = path == section.path;
    html->Raw("<a").Attribute("href", section.path);
    if (is_here) html->Raw(" aria-current=\"page\"");
    html->Raw(">").Text(section.name).Raw("</a>");
  }
  html->Raw("</nav><div class=\"who\">");
  if (visitor.is_signed_in()) {
    html->Raw("<span>").Text(absl::StrCat(visitor.principal, ", ", visitor.role));
    html->Raw("</span><form method=\"post\" action=\"/signout\"><input type=\"hidden\"");
    html->Raw(" name=\"form_token\"").Attribute("value", visitor.form_token);
    html->Raw("><button>Sign out</button></form>");
  } else {
    html->Raw("<a href=\"/signin\">Sign in</a>");
  }
  html->Raw("</div></header>");
}

void AddStart(const Visitor& visitor, absl::string_view title, absl::string_view path, Html* html) {
  html->Raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
  html->Raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
  html->Text(title).Raw(" – Assay</title><link rel=\"icon\"");
  html->Attribute("href", AssetUrl("icon.svg")).Raw(" type=\"image/svg+xml\">");
  html->Raw("<link rel=\"stylesheet\"").Attribute("href", AssetUrl("app.css"));
  html->Raw("><script defer").Attribute("src", AssetUrl("live.js")).Raw("></script></head>");
  html->Raw("<body><a class=\"skip\" href=\"#main\">Skip to content</a>");
  AddHeader(visitor, path, html);
}

std::string DataPath(const Request& request, absl::string_view suffix) {
  const std::string query = QueryWith(request, "", "");
  return absl::StrCat(request.path, suffix, query == "?" ? "" : query);
}

void AddFoot(const Request& request, const PageView& view, Html* html) {
  html->Raw("<footer><p>");
  std::set<std::string> told;
  for (const RulesUsed& rules : view.rules) {
    if (rules.digest.empty() || !told.insert(rules.digest).second) continue;
    html->Raw("<span>Judged by ");
    html->Link(absl::StrCat("/rules?round=", EncodeUrl(rules.round)), rules.round);
    html->Raw(", digest <code>").Text(rules.digest).Raw("</code></span> ");
  }
  if (told.empty()) html->Raw("<span>No rule set judged what this page shows.</span> ");
  html->Raw("<span>Data: ").Link(DataPath(request, ".csv"), "CSV").Raw(", ");
  html->Link(DataPath(request, ".json"), "JSON").Raw("</span> <span>Times are UTC.</span></p>");
  html->Raw("</footer>");
}

}  // namespace

std::string QueryWith(const Request& request, absl::string_view name, absl::string_view value) {
  std::string query = "?";
  const auto add = [&query](absl::string_view key, absl::string_view text) {
    absl::StrAppend(&query, query.size() > 1 ? "&" : "", EncodeUrl(key), "=", EncodeUrl(text));
  };
  for (const auto& [key, text] : request.query.pairs())
    if (key != name && !text.empty()) add(key, text);
  if (!name.empty() && !value.empty()) add(name, value);
  return query;
}

Html Tabs(const Request& request, Markup label, absl::string_view name, absl::string_view chosen,
          const std::vector<std::pair<std::string, std::string>>& choices) {
  Html html;
  html.Raw("<nav class=\"tabs\" aria-label=\"").Raw(label).Raw("\">");
  for (const auto& [value, text] : choices) {
    html.Raw("<a").Attribute("href", QueryWith(request, name, value));
    if (value == chosen) html.Raw(" aria-current=\"true\"");
    html.Raw(">").Text(text).Raw("</a>");
  }
  return html.Raw("</nav>");
}

Response HtmlPage(const Visitor& visitor, absl::string_view title, const Html& main) {
  Html html;
  AddStart(visitor, title, "", &html);
  html.Raw("<main id=\"main\">").Add(main).Raw("</main></body></html>\n");
  return Response{.body = html.Take()};
}

Response Render(const Context& context, const Request& request, const PageView& view) {
  if (request.format == "json")
    return Response{.content_type = "application/json",
                    .body = absl::StrCat(client::DumpSafely(view.json, 1), "\n")};
  if (request.format == "csv")
    return Response{.content_type = "text/csv; charset=utf-8", .body = TableCsv(view.table)};
  Html html;
  AddStart(context.visitor, view.title, request.path, &html);
  if (!view.crumbs.empty()) {
    html.Raw("<nav class=\"crumbs\" aria-label=\"Where you are\">");
    for (const Crumb& crumb : view.crumbs)
      html.Link(crumb.path, crumb.name).Raw("<span aria-hidden=\"true\">/</span>");
    html.Raw("</nav>");
  }
  html.Raw("<main id=\"main\">").Add(view.main).Raw("</main>");
  AddFoot(request, view, &html);
  html.Raw("</body></html>\n");
  return Response{.body = html.Take()};
}

}  // namespace assay::web
