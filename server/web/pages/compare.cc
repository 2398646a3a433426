// Entries beside each other: what differs, and whether the one is faster for its machine or by
// luck.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/client/comparison.h"
#include "common/status.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

constexpr size_t kComparedMax = 10;

// entry=e-1&entry=e-2, or entry=e-1+e-2 of the form.
std::vector<std::string> AskedEntries(const Request& request) {
  std::vector<std::string> ids;
  for (const std::string& value : request.query.All("entry"))
    for (const absl::string_view id :
         absl::StrSplit(value, absl::ByAnyChar(" ,\t\n"), absl::SkipEmpty()))
      ids.emplace_back(id);
  return ids;
}

void AddCompareForm(const std::vector<std::string>& ids, bool is_all, Html* html) {
  std::string text;
  for (const std::string& id : ids)
    absl::StrAppend(&text, text.empty() ? "" : " ", id);
  html->Raw("<form method=\"get\" class=\"wide\"><label>Entries or runs, 2 to 10");
  html->Raw("<input name=\"entry\" required").Attribute("value", text).Raw("></label>");
  html->Raw("<label class=\"check\"><input type=\"checkbox\" name=\"all\" value=\"1\"");
  if (is_all) html->Raw(" checked");
  html->Raw(">Also what agrees</label><button>Compare</button></form>");
}

TableColumn ComparedColumn(const std::string& id) {
  return {.title = id, .member = id, .format = CellFormat::kWords};
}

}  // namespace

absl::StatusOr<Response> ComparePage(const Context& context, const Request& request) {
  const std::vector<std::string> ids = AskedEntries(request);
  const bool is_all = !request.query.First("all").empty();
  PageView view{.title = "Compare", .crumbs = {{"Results", "/"}}};
  Html& main = view.main;
  main.Raw("<h1>Compare</h1><p class=\"sub\">What differs between entries, or between runs.</p>");
  AddCompareForm(ids, is_all, &main);
  view.json = {{"ids", ids}};
  view.table = {.columns = {{.title = "What", .member = "field"}}};
  if (ids.empty()) return Render(context, request, view);
  if (ids.size() < 2 || ids.size() > kComparedMax)
    return absl::InvalidArgumentError(
        absl::StrCat("entry: names ", ids.size(), ": give 2 to ", kComparedMax, ", as e-1 e-2"));
  ASSIGN_OR_RETURN(const std::vector<Json> resources,
                   client::ReadForComparison(context.client, ids));
  view.table = {.caption = is_all ? "All members" : "Members that differ",
                .empty = "They agree in everything that is compared.",
                .columns = {{.title = "What", .member = "field", .format = CellFormat::kText}},
                .rows = client::CompareResources(ids, resources, is_all)};
  for (const std::string& id : ids)
    view.table.columns.push_back(ComparedColumn(id));
  main.Raw("<p class=\"actions\">");
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_run = absl::StartsWith(ids[i], "r-");
    main.Link(is_run ? RunPath(ids[i]) : EntryPath(ids[i]), ids[i]);
    if (!is_run)
      view.rules.push_back({TextOf(resources[i], "round"), TextOf(resources[i], "rules_digest")});
  }
  main.Raw("</p>").Add(TableHtml(view.table));
  view.json["differences"] = view.table.rows;
  main.Add(ScoreFootnotes("the round that each names"));
  return Render(context, request, view);
}

}  // namespace assay::web
