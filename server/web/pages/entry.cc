// The page of an entry: from its score to the runs, the curve, the lines of the logs and the rules;
// and the same on one page to be printed.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "common/url.h"
#include "server/web/pages/entry_reading.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

void AddTitle(const EntryReading& reading, Html* html) {
  const Json& json = reading.json;
  html->Raw("<h1>").Text(TextOf(json, "benchmark")).Raw(" on ").Text(TextOf(json, "system"));
  html->Raw("</h1><p class=\"sub\">").Text(TextOf(json, "organization")).Raw(" · ");
  html->Link(RoundPath(TextOf(json, "round")), TextOf(json, "round")).Raw(" · ");
  html->Text(TextOf(json, "division")).Raw(" division");
  if (const std::string category = TextOf(json, "status"); !category.empty())
    html->Raw(" · ").Text(category);
  if (const std::string scaling = TextOf(json, "scaling"); !scaling.empty())
    html->Raw(" · ").Text(scaling).Raw(" scaling");
  html->Raw(" · ").Text(reading.id()).Raw("</p>");
}

void AddContents(const EntryReading& reading, Html* html) {
  html->Raw("<nav class=\"actions\" aria-label=\"On this page\">");
  for (const auto& [anchor, name] :
       std::vector<std::pair<std::string, std::string>>{{"#runs", "Runs"},
                                                        {"#convergence", "Convergence"},
                                                        {"#phases", "Phases"},
                                                        {"#touch", "First touch"},
                                                        {"#energy", "Energy"},
                                                        {"#findings", "Findings"},
                                                        {"#hyperparameters", "Hyperparameters"},
                                                        {"#system", "System"},
                                                        {"#materials", "Materials"},
                                                        {"#ledger", "Attempts"}})
    html->Link(anchor, name);
  html->Link(EntryPath(reading.id()) + "/digest", "One page to print");
  const std::string like = absl::StrCat("benchmark=", TextOf(reading.json, "benchmark"),
                                        " round=", TextOf(reading.json, "round"),
                                        " division=", TextOf(reading.json, "division"));
  html->Link(absl::StrCat("/query?filter=", EncodeUrl(like), "&order=minutes"), "Others like it");
  html->Raw("</nav>");
}

void AddCourses(const std::vector<RunReading>& courses, Json* json) {
  Json rows = Json::array();
  for (const RunReading& run : courses) {
    Json row = {{"run", run.id}, {"part", run.part}};
    row.update(client::CourseJson(*run.course));
    rows.push_back(std::move(row));
  }
  (*json)["courses"] = std::move(rows);
}

}  // namespace

absl::StatusOr<Response> EntryPage(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const EntryReading reading,
                   ReadEntryReading(context, request.parameters.First("entry")));
  const std::vector<RunReading> courses = ReadCourses(context, reading);
  PageView view{
      .title = absl::StrCat(TextOf(reading.json, "benchmark"), " on ",
                            TextOf(reading.json, "system"), ", ", reading.id()),
      .crumbs = {{"Results", "/"},
                 {TextOf(reading.json, "round"), RoundPath(TextOf(reading.json, "round"))},
                 {"all results", RoundPath(TextOf(reading.json, "round")) + "/results"}}};
  view.table = RunsTable(reading);
  view.rules = {{TextOf(reading.json, "round"), reading.entry.rules_digest()}};
  view.json = reading.json;
  view.json["run_details"] = reading.run_rows;
  AddCourses(courses, &view.json);
  Html& main = view.main;
  AddTitle(reading, &main);
  main.Add(ScoreSection(reading));
  AddContents(reading, &main);
  main.Raw("<h2 id=\"runs\">Runs</h2>").Add(TableHtml(view.table));
  main.Add(ConvergenceSection(request, reading, courses));
  main.Add(PhasesSection(reading, courses));
  main.Add(TouchSection(context, reading, &view.json));
  main.Add(EnergySection(reading));
  main.Raw("<h2 id=\"findings\">Findings</h2>").Add(FindingsHtml(EntryFindings(reading)));
  main.Add(HyperparametersSection(reading));
  main.Add(SystemSection(context, reading, &view.json));
  main.Add(MaterialsSection(context, reading, &view.json));
  main.Add(LedgerSection(reading));
  main.Raw("<h2 id=\"footnotes\">Footnotes</h2>")
      .Add(ScoreFootnotes(TextOf(reading.json, "round")));
  return Render(context, request, view);
}

absl::StatusOr<Response> EntryDigestPage(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const EntryReading reading,
                   ReadEntryReading(context, request.parameters.First("entry")));
  const std::vector<RunReading> courses = ReadCourses(context, reading);
  PageView view{.title = absl::StrCat("Digest of ", reading.id()),
                .crumbs = {{"Results", "/"}, {reading.id(), EntryPath(reading.id())}}};
  view.table = RunsTable(reading);
  view.table.columns.resize(7);  // what is about the score
  view.rules = {{TextOf(reading.json, "round"), reading.entry.rules_digest()}};
  view.json = reading.json;
  view.json["run_details"] = reading.run_rows;
  Html& main = view.main;
  AddTitle(reading, &main);
  main.Add(ScoreSection(reading)).Add(TableHtml(view.table));
  if (!courses.empty()) main.Add(DrawLines(ConvergenceChart(reading, courses, "epoch")));
  const Json findings = EntryFindings(reading);
  main.Raw("<p>").Text(Counted(findings.size(), "finding")).Raw(": ");
  std::string last;
  for (const Json& finding : findings)
    if (const std::string rule = TextOf(finding, "rule"); rule != last) {
      main.Link(RulePath(rule), rule).Raw(" ");
      last = rule;
    }
  main.Raw("</p>").Add(ScoreFootnotes(TextOf(reading.json, "round")));
  return Render(context, request, view);
}

}  // namespace assay::web
