// Terms, each defined once.

#include <string>

#include "absl/strings/str_join.h"

#include "common/history_fields.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

struct Term {
  Markup anchor;
  Markup name;
  Markup meaning;
};

constexpr Term kTerms[] = {
    {"entry", "Entry",
     "One benchmark, submitted by one organisation to one round and division, with all of its "
     "runs: "
     "e-42. Also called a submission."},
    {"run", "Run", "One training from start to end, with one log and one seed: r-901."},
    {"round", "Round",
     "The rules by which entries are judged, as data with a digest. A facility can have rounds of "
     "its own; their results are not MLPerf results."},
    {"division", "Division",
     "Closed: the reference's model and optimizer, within the rules' freedom, so that results can "
     "be "
     "compared. Open: the same task, solved in any way."},
    {"category", "Category",
     "On premises, cloud, preview or research: how one can get the system."},
    {"time-to-solution", "Time to solution",
     "The time from run_start to run_stop of a run that reached the target, in its log's time."},
    {"olympic", "Olympic mean",
     "The mean of the runs that count without the fastest and the slowest. A run that missed the "
     "target ranks as the slowest."},
    {"window", "Window",
     "Where more runs were made than a round demands, the consecutive ones that the score is of."},
    {"interval", "Interval",
     "By how much the score would differ had other runs been drawn: the range of 95 % of resampled "
     "sets."},
    {"throughput", "Throughput",
     "Of weak scaling: models trained to the target per minute, by many instances side by side."},
    {"assurance", "Strength of the first touch",
     "Proven: the kernel held the first access until it was written down. Observed: the node saw "
     "it. "
     "Self-reported: nobody saw it, and only the log says when the run began. A set is as strong "
     "as "
     "its weakest run."},
    {"holes", "Holes",
     "What could have been before the first touch that was seen, without being seen; each has a "
     "code "
     "and a reason."},
    {"coldness", "Coldness",
     "How sure it is that no data was in a node's memory when the run began."},
    {"finding", "Finding",
     "What a rule says about a log, a set or a node: an error, which the rule does not allow, or a "
     "warning, which people should look at."},
    {"reference", "Reference convergence",
     "How many epochs the reference took with a batch size. Entries that converge in significantly "
     "fewer are looked into."},
    {"verified", "Verified",
     "Published by MLCommons after its review. All other results are unverified."},
    {"unofficial", "Unofficial",
     "Derived from results in a way that MLPerf does not define, such as times per node."},
    {"digest", "Digest",
     "SHA-256 of the bytes of a file, a rule set or a dataset's list of files."}};

// What each kind of rows can be asked for.
Html FieldsHtml() {
  Html html;
  for (const HistoryKind kind : kHistoryKinds) {
    html.Raw("<details><summary>Fields of <code>kind=").Text(ToString(kind));
    html.Raw("</code></summary><dl class=\"terms\">");
    for (const HistoryField& field : HistoryFields(kind)) {
      html.Raw("<dt>").Text(field.name);
      if (!field.unit.empty()) html.Raw(" (").Text(field.unit).Raw(")");
      html.Raw("</dt><dd>").Text(field.help);
      if (!field.choices.empty()) html.Raw(": ").Text(absl::StrJoin(field.choices, ", "));
      html.Raw("</dd>");
    }
    html.Raw("</dl></details>");
  }
  return html;
}

}  // namespace

absl::StatusOr<Response> HelpPage(const Context& context, const Request& request) {
  PageView view{.title = "Help", .crumbs = {{"Results", "/"}}};
  view.table = {.columns = {{.member = "term"}, {.member = "meaning"}}};
  Html& main = view.main;
  main.Raw(
      "<h1>Help</h1><h2 id=\"filters\">Filters</h2><p>A filter is "
      "<code>FIELD=VALUE</code>, or another comparison: <code>!= &lt; &lt;= &gt; &gt;=</code>, "
      "and <code>:</code> for text within a text or a rule among the findings. A "
      "<code>*</code> stands for any text. Terms are joined by AND, which need not be written, "
      "OR, NOT (or <code>-</code>) and parentheses; OR binds tighter than AND. The language is "
      "AIP-160; what was understood is shown with all its parentheses.</p>"
      "<p><code>division=closed (round=v0.7 OR round=v1.0) minutes&lt;60 "
      "-organization=NVIDIA hyperparameters.global_batch_size&gt;1024</code></p>"
      "<p>Questions have an order, <code>minutes desc, time</code>; columns; and, in place of "
      "rows, "
      "groups with statistics: <code>count</code>, <code>min(F)</code>, <code>max(F)</code>, "
      "<code>mean(F)</code>, <code>sum(F)</code>, <code>p50(F)</code>, <code>p95(F)</code>.</p>");
  main.Add(FieldsHtml());
  main.Raw(
      "<h2 id=\"data\">Data</h2><p>Each page has its data at the same address with "
      "<code>.csv</code> or <code>.json</code> at the end of the path. Units are in the names; "
      "what is not known is absent.</p><h2 id=\"terms\">Terms</h2><dl class=\"terms\">");
  for (const Term& term : kTerms) {
    main.Raw("<dt id=\"").Raw(term.anchor).Raw("\">").Raw(term.name).Raw("</dt><dd>");
    main.Raw(term.meaning).Raw("</dd>");
    view.table.rows.push_back(
        {{"term", std::string(term.name.text())}, {"meaning", std::string(term.meaning.text())}});
  }
  main.Raw("</dl>");
  view.json = {{"terms", view.table.rows}};
  return Render(context, request, view);
}

}  // namespace assay::web
