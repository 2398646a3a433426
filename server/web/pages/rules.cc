// What rules say: of a round all of them, and one with what each round makes of it.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/client/rule_json.h"
#include "common/client/suggest.h"
#include "common/rules/registry.h"
#include "common/status.h"
#include "common/url.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

TableColumn RuleColumn() {
  return {.title = "Rule", .member = "id", .path = [](const Json& row) {
            return RulePath(TextOf(row, "id"));
          }};
}

// All ids with what each wants, where no round is chosen.
Json EveryRule() {
  Json rows = Json::array();
  for (const std::string& id : client::AllRuleIds()) {
    Json rule = client::FindRuleJson(id);
    rule.erase("rounds");
    rows.push_back(std::move(rule));
  }
  return rows;
}

}  // namespace

absl::StatusOr<Response> RulesPage(const Context& context, const Request& request) {
  const std::string asked = request.query.First("round");
  const rules::RuleSet* const rules = asked.empty() ? nullptr : rules::FindRuleSet(asked);
  PageView view{.title = "Rules", .crumbs = {{"Results", "/"}}};
  std::vector<std::pair<std::string, std::string>> rounds = {{"", "all rounds"}};
  for (const rules::RuleSet* const one : rules::BuiltInRuleSets())
    rounds.push_back({one->name(), one->name()});
  view.table = {
      .caption = "Rules",
      .columns = {RuleColumn(),
                  {.title = "Key", .member = "key", .format = CellFormat::kCode},
                  {.title = "Wants", .member = "expected", .format = CellFormat::kWords},
                  {.title = "Stands in", .member = "section", .format = CellFormat::kWords},
                  {.title = "What to do", .member = "remedy", .format = CellFormat::kWords}}};
  view.main.Raw(
      "<h1>Rules</h1><p class=\"sub\">What the logs, packages and nodes of an entry are "
      "judged by.</p>");
  view.main.Add(Tabs(request, "Round", "round", rules == nullptr ? asked : rules->name(), rounds));
  if (rules != nullptr) {
    const Json details = client::RoundDetailsJson(*rules);
    view.table.columns.insert(view.table.columns.begin() + 1, {.title = "In", .member = "config"});
    view.table.rows = details["rules"];
    view.json = details;
    view.rules = {{rules->name(), rules->digest()}};
    view.main.Raw("<p>").Text(rules->data().label).Raw("</p>");
  } else if (!asked.empty()) {
    // A facility's own round: what it has of its own is in its file alone.
    view.main.Raw("<p>The rules of ").Text(asked);
    view.main.Raw(" are in the coordinator's file of it; those below hold in all rounds.</p>");
    view.table.rows = EveryRule();
    view.json = {{"items", view.table.rows}};
  } else {
    view.table.rows = EveryRule();
    view.json = {{"items", view.table.rows}};
    for (const rules::RuleSet* const one : rules::BuiltInRuleSets())
      view.rules.push_back({one->name(), one->digest()});
  }
  view.main.Add(TableHtml(view.table));
  return Render(context, request, view);
}

absl::StatusOr<Response> RulePage(const Context& context, const Request& request) {
  const std::string id = absl::AsciiStrToUpper(request.parameters.First("rule"));
  const Json rule = client::FindRuleJson(id);
  if (rule.is_null())
    return absl::NotFoundError(absl::StrCat("there is no rule '", id, "' in a built-in round",
                                            client::DidYouMean(id, client::AllRuleIds()),
                                            "; /rules lists them"));
  PageView view{.title = id, .crumbs = {{"Results", "/"}, {"Rules", "/rules"}}, .json = rule};
  view.main.Raw("<h1>").Text(id).Raw("</h1>");
  if (const std::string key = TextOf(rule, "key"); !key.empty())
    view.main.Raw("<p class=\"sub\">about <code>").Text(key).Raw("</code></p>");
  view.main.Raw("<dl class=\"terms\">");
  for (const auto& [name, member] :
       std::vector<std::pair<std::string, std::string>>{{"What it wants", "expected"},
                                                        {"Where it stands", "section"},
                                                        {"What to do about a violation", "remedy"},
                                                        {"Severity", "severity"}})
    if (const std::string text = TextOf(rule, member); !text.empty())
      view.main.Raw("<dt>").Text(name).Raw("</dt><dd>").Text(text).Raw("</dd>");
  view.main.Raw("</dl>");
  view.table = {
      .caption = "What each round makes of it",
      .empty = "It is the same in all rounds.",
      .columns = {{.title = "Round",
                   .member = "round",
                   .path = [](const Json& row) { return RoundPath(TextOf(row, "round")); }},
                  {.title = "In", .member = "config"},
                  {.title = "Wants", .member = "expected", .format = CellFormat::kWords}},
      .rows = MemberAt(rule, "rounds").is_array() ? rule["rounds"] : Json::array()};
  view.main.Add(TableHtml(view.table)).Raw("<p class=\"actions\">");
  view.main.Link(absl::StrCat("/query?filter=", EncodeUrl("findings:" + id)),
                 "Entries that it has found something in");
  view.main.Raw("</p>");
  for (const rules::RuleSet* const one : rules::BuiltInRuleSets())
    view.rules.push_back({one->name(), one->digest()});
  return Render(context, request, view);
}

}  // namespace assay::web
