#include "server/web/pages/parts.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/url.h"

namespace assay::web {
namespace {

// More of one rule are counted, not shown: the runs' pages have them all.
constexpr size_t kPlacesPerRule = 40;

Html PlaceHtml(const Json& finding) {
  Html html;
  const std::string run = TextOf(finding, "run");
  const int64_t line = finding.value("line", int64_t{0});
  if (run.empty()) return html.Text("the set");
  if (line > 0) return html.Link(LogPath(run, line), absl::StrCat(run, ", line ", line));
  return html.Link(RunPath(run), run);
}

void AddRuleGroup(const std::string& rule, const std::vector<Json>& findings, Html* html) {
  const Json& first = findings.front();
  const bool is_warning = TextOf(first, "severity") == "warning";
  html->Raw("<h3 id=\"").Text(rule).Raw("\">").Link(RulePath(rule), rule).Raw(" ");
  if (is_warning) {
    html->Raw("<span class=\"badge warn\">warning</span> ");
  } else {
    html->Raw("<span class=\"badge bad\">error</span> ");
  }
  html->Raw("<span class=\"note\">").Text(Counted(findings.size(), "finding"));
  html->Raw("</span></h3><p>Wants ").Text(TextOf(first, "expected"));
  if (const std::string key = TextOf(first, "key"); !key.empty())
    html->Raw(" of <code>").Text(key).Raw("</code>");
  html->Raw(".</p>");
  // Where all found the same it is said once, with the places.
  std::map<std::string, std::vector<const Json*>> by_found;
  for (const Json& finding : findings)
    by_found[TextOf(finding, "found")].push_back(&finding);
  html->Raw("<ul>");
  size_t shown = 0;
  for (const auto& [found, places] : by_found) {
    html->Raw("<li>Found <code>").Text(found.empty() ? "nothing" : found).Raw("</code>: ");
    bool is_first = true;
    for (const Json* finding : places) {
      if (++shown > kPlacesPerRule) break;
      if (!is_first) html->Raw(", ");
      html->Add(PlaceHtml(*finding));
      is_first = false;
    }
    html->Raw("</li>");
    if (shown > kPlacesPerRule) break;
  }
  html->Raw("</ul>");
  if (shown > kPlacesPerRule)
    html->Raw("<p class=\"note\">The rest is left out here; each run's page has its own.</p>");
  if (const std::string remedy = TextOf(first, "remedy"); !remedy.empty())
    html->Raw("<p class=\"note\">What to do: ").Text(remedy).Raw("</p>");
}

}  // namespace

std::string EntryPath(absl::string_view id) {
  return absl::StrCat("/entries/", EncodeUrl(id));
}
std::string RunPath(absl::string_view id) {
  return absl::StrCat("/runs/", EncodeUrl(id));
}
std::string LogPath(absl::string_view run, int64_t line) {
  const int64_t page = line < 1 ? 1 : (line - 1) / kLogPageLines + 1;
  return absl::StrCat(RunPath(run), "/log", page > 1 ? absl::StrCat("?page=", page) : "", "#L",
                      line);
}
std::string RoundPath(absl::string_view round) {
  return absl::StrCat("/rounds/", EncodeUrl(round));
}
std::string RulePath(absl::string_view rule) {
  return absl::StrCat("/rules/", EncodeUrl(rule));
}
std::string NodePath(absl::string_view node) {
  return absl::StrCat("/fleet#", EncodeUrl(node));
}

std::string TextOf(const Json& row, absl::string_view member) {
  const Json& value = MemberAt(row, member);
  return value.is_string() ? value.get<std::string>() : "";
}

Html StateBadge(absl::string_view state) {
  Html html;
  const bool is_good = state == "valid" || state == "succeeded" || state == "alive";
  const bool is_bad = state == "invalid" || state == "failed" || state == "lost";
  const bool is_open = state == "running" || state == "checking" || state == "suspect";
  if (is_good) {
    html.Raw("<span class=\"badge good\">");
  } else if (is_bad) {
    html.Raw("<span class=\"badge bad\">");
  } else if (is_open) {
    html.Raw("<span class=\"badge warn\">");
  } else {
    html.Raw("<span class=\"badge\">");
  }
  return html.Text(state.empty() ? "unknown" : state).Raw("</span>");
}

bool IsVerified(const Json& entry) {
  const auto is = [&entry](const char* name) {
    const Json& value = MemberAt(entry, name);
    return value.is_boolean() && value.get<bool>();
  };
  return is("is_imported") && is("is_mlperf_result");
}

Html VerifiedBadge(const Json& entry) {
  Html html;
  if (IsVerified(entry)) return html.Raw("<span class=\"badge good\">verified</span>");
  return html.Raw("<span class=\"badge\">unverified</span>");
}

Html ScoreFootnotes(const std::string& rounds) {
  Html html;
  html.Raw("<p class=\"note\">Verified: published by MLCommons in ").Text(rounds);
  html.Raw(
      " and imported from its repository of results. Unverified: MLCommons has not reviewed "
      "it. Compare results of one benchmark and division; where rounds, scales or categories "
      "differ, say so. Figures per accelerator and all others that are derived are "
      "unofficial: MLPerf does not define them.</p>");
  return html;
}

TableColumn EntryColumn(std::string member) {
  return {.title = "Entry", .member = member, .path = [member](const Json& row) {
            return EntryPath(TextOf(row, member));
          }};
}

TableColumn RunColumn(std::string member) {
  return {.title = "Run", .member = member, .path = [member](const Json& row) {
            return RunPath(TextOf(row, member));
          }};
}

TableColumn StateColumn() {
  return {.title = "State", .member = "state", .draw = [](const Json& row) {
            return StateBadge(TextOf(row, "state"));
          }};
}

TableColumn YesNoColumn(std::string title, std::string member, bool is_bad_if_no) {
  return {
      .title = std::move(title), .member = member, .draw = [member, is_bad_if_no](const Json& row) {
        Html html;
        const Json& value = MemberAt(row, member);
        if (!value.is_boolean()) return html.Raw("<span class=\"none\">–</span>");
        if (value.get<bool>()) return html.Text("yes");
        if (!is_bad_if_no) return html.Text("no");
        return html.Raw("<strong class=\"bad\">no</strong>");
      }};
}

Html FindingsHtml(const Json& findings) {
  Html html;
  if (findings.empty()) return html.Raw("<p>No rule found anything.</p>");
  std::vector<std::string> order;
  std::map<std::string, std::vector<Json>> by_rule;
  for (const bool is_error : {true, false})
    for (const Json& finding : findings) {
      if ((TextOf(finding, "severity") != "warning") != is_error) continue;
      const std::string rule = TextOf(finding, "rule");
      if (!by_rule.contains(rule)) order.push_back(rule);
      by_rule[rule].push_back(finding);
    }
  for (const std::string& rule : order)
    AddRuleGroup(rule, by_rule[rule], &html);
  return html;
}

Json FindingRows(const Json& run) {
  Json rows = Json::array();
  for (Json finding : MemberAt(run, "findings")) {
    finding["run"] = TextOf(run, "id");
    rows.push_back(std::move(finding));
  }
  return rows;
}

std::string Counted(size_t count, absl::string_view noun) {
  return absl::StrCat(GroupDigits(static_cast<int64_t>(count)), " ", noun, count == 1 ? "" : "s");
}

}  // namespace assay::web
