// The log of a run, byte for byte, in pages of a thousand lines, with what rules found beside them.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/client/artifacts.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/mllog.h"
#include "common/status.h"
#include "common/url.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

// A line that is longer is shown to here; the file has all of it.
constexpr size_t kLineShown = 16 << 10;

std::vector<absl::string_view> LinesOf(const std::string& log) {
  std::vector<absl::string_view> lines;
  MllogLines reader(log);
  for (absl::string_view line; reader.Next(&line);)
    lines.push_back(line);
  return lines;
}

void AddFindingRow(const Json& finding, Html* html) {
  if (TextOf(finding, "severity") == "warning") {
    html->Raw("<tr class=\"flag soft\"><td colspan=\"2\">");
  } else {
    html->Raw("<tr class=\"flag\"><td colspan=\"2\">");
  }
  const std::string rule = TextOf(finding, "rule");
  html->Link(RulePath(rule), rule).Raw(" wants ").Text(TextOf(finding, "expected"));
  html->Raw(", found ").Text(TextOf(finding, "found")).Raw("</td></tr>");
}

Html LogLines(const std::vector<absl::string_view>& lines, int64_t first, int64_t end,
              const std::multimap<int64_t, Json>& findings) {
  Html html;
  html.Raw("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Lines of the log\">");
  html.Raw("<table class=\"log\"><caption>Lines ").Text(GroupDigits(first)).Raw(" to ");
  html.Text(GroupDigits(end - 1)).Raw("</caption><tbody>");
  for (int64_t number = first; number < end; ++number) {
    const absl::string_view line = lines[static_cast<size_t>(number - 1)];
    const std::string anchor = absl::StrCat("L", number);
    html.Raw("<tr").Attribute("id", anchor).Raw("><th scope=\"row\">");
    html.Link("#" + anchor, absl::StrCat(number)).Raw("</th><td>");
    html.Text(line.substr(0, kLineShown));
    if (line.size() > kLineShown)
      html.Raw(" <em>… ").Text(BytesText(static_cast<double>(line.size()))).Raw(" in all</em>");
    html.Raw("</td></tr>");
    const auto [from, to] = findings.equal_range(number);
    for (auto finding = from; finding != to; ++finding)
      AddFindingRow(finding->second, &html);
  }
  return html.Raw("</tbody></table></div>");
}

Html LogPageLinks(const Request& request, int64_t page, int64_t pages) {
  Html html;
  if (pages < 2) return html;
  html.Raw("<p class=\"actions\"><span>Page ").Text(absl::StrCat(page)).Raw(" of ");
  html.Text(absl::StrCat(pages)).Raw("</span>");
  if (page > 1) html.Link(QueryWith(request, "page", absl::StrCat(page - 1)), "Previous page");
  if (page < pages) html.Link(QueryWith(request, "page", absl::StrCat(page + 1)), "Next page");
  html.Link(QueryWith(request, "page", absl::StrCat(pages)), "Last page");
  return html.Raw("</p>");
}

}  // namespace

absl::StatusOr<Response> RunLogPage(const Context& context, const Request& request) {
  ASSIGN_OR_RETURN(const v1::Run run,
                   client::GetRun(context.client, request.parameters.First("run")));
  ASSIGN_OR_RETURN(const v1::Submission entry,
                   client::GetEntry(context.client, client::ShortId(run.submission())));
  const std::string id = client::ShortId(run.name());
  const v1::ArtifactRef* const file = client::ResultFile(run);
  if (file == nullptr)
    return absl::NotFoundError(absl::StrCat(id, " has left no log yet: it has not ended; ",
                                            RunPath(id), "/live shows its lines as they come"));
  ASSIGN_OR_RETURN(const std::string log, client::DownloadArtifact(context.client, *file));
  const std::vector<absl::string_view> lines = LinesOf(log);
  const int64_t pages =
      std::max<int64_t>(1, (std::ssize(lines) + kLogPageLines - 1) / kLogPageLines);
  int64_t page = 1;
  if (!absl::SimpleAtoi(request.query.First("page"), &page)) page = 1;
  page = std::clamp<int64_t>(page, 1, pages);
  const int64_t first = (page - 1) * kLogPageLines + 1;
  const int64_t end = std::min<int64_t>(first + kLogPageLines, std::ssize(lines) + 1);
  const Json json = client::RunJson(run);
  std::multimap<int64_t, Json> findings;
  Json whole = Json::array();
  for (const Json& finding : FindingRows(json)) {
    const int64_t line = finding.value("line", int64_t{0});
    if (line > 0) {
      findings.emplace(line, finding);
    } else {
      whole.push_back(finding);
    }
  }
  PageView view{
      .title = absl::StrCat("Log of ", id),
      .crumbs = {{"Results", "/"},
                 {client::ShortId(entry.name()), EntryPath(client::ShortId(entry.name()))},
                 {id, RunPath(id)}}};
  view.rules = {{entry.spec().round(), entry.rules_digest()}};
  view.table = {.columns = {{.member = "line"}, {.member = "text"}}};
  for (int64_t number = first; number < end; ++number)
    view.table.rows.push_back(
        {{"line", number}, {"text", std::string(lines[static_cast<size_t>(number - 1)])}});
  view.json = {{"run", id},
               {"file", file->file_name()},
               {"sha256", file->sha256()},
               {"bytes", file->size_bytes()},
               {"page", page},
               {"pages", pages},
               {"lines", view.table.rows},
               {"findings", FindingRows(json)}};
  Html& main = view.main;
  main.Raw("<h1>Log of ").Text(id).Raw("</h1><p class=\"sub\">").Text(file->file_name()).Raw(", ");
  main.Text(Counted(lines.size(), "line")).Raw(", ");
  main.Text(BytesText(static_cast<double>(file->size_bytes()))).Raw(", SHA-256 <code>");
  main.Text(file->sha256()).Raw("</code></p><p class=\"actions\">");
  main.Link(absl::StrCat(RunPath(id), "/files/", EncodeUrl(file->file_name())), "Download it");
  main.Link(RunPath(id), "The run").Raw("</p>");
  if (!whole.empty()) main.Raw("<details><summary>").Text(Counted(whole.size(), "finding"));
  if (!whole.empty())
    main.Raw(" about the log as a whole</summary>").Add(FindingsHtml(whole)).Raw("</details>");
  main.Add(LogPageLinks(request, page, pages));
  main.Add(LogLines(lines, first, end, findings)).Add(LogPageLinks(request, page, pages));
  return Render(context, request, view);
}

}  // namespace assay::web
