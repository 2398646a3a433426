// The frame around every page: where one is, who one is, the data of the page as CSV and JSON, and
// by which rules what it shows was judged.

#ifndef SERVER_WEB_FRAME_H_
#define SERVER_WEB_FRAME_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/web/html.h"
#include "server/web/page.h"
#include "server/web/table.h"

namespace assay::web {

// A place on the way from the first page to this one.
struct Crumb {
  std::string name;
  std::string path;
};

// A rule set by which something on the page was judged.
struct RulesUsed {
  std::string round;
  std::string digest;
};

struct PageView {
  std::string title;
  std::vector<Crumb> crumbs;
  Html main;
  Json json;    // PATH.json
  Table table;  // PATH.csv; its HTML is within `main`
  std::vector<RulesUsed> rules;
};

// The page in the format that the request asks for.
Response Render(const Context& context, const Request& request, const PageView& view);

// A whole document around `main`, without data: errors, forms.
Response HtmlPage(const Visitor& visitor, absl::string_view title, const Html& main);

// The same page with other values in its query: `name` and `value` in place of what it has of that
// name; an empty value leaves it out. "?round=v1.0&x=epoch".
std::string QueryWith(const Request& request, absl::string_view name, absl::string_view value);

// Tabs: links to this page with each value of `name`, the chosen one marked. Each has a value and
// what people see.
Html Tabs(const Request& request, Markup label, absl::string_view name, absl::string_view chosen,
          const std::vector<std::pair<std::string, std::string>>& choices);

}  // namespace assay::web

#endif  // SERVER_WEB_FRAME_H_
