// Scaling: how time to solution, or throughput, goes with the machine, beside the ideal line.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/web/chart.h"
#include "server/web/pages/entry_list.h"
#include "server/web/pages/pages.h"
#include "server/web/pages/parts.h"

namespace assay::web {
namespace {

// A chart with more lines is not read by anybody; the table has them all.
constexpr size_t kLinesMax = 24;

struct ScalingLine {
  std::string benchmark, name;
  std::vector<ChartPoint> points;
};

// Points of each organisation and round: which of its systems are scales of one nobody has said, so
// they are not joined.
std::vector<ScalingLine> LinesOfScaling(const Json& rows, const char* member) {
  std::map<std::pair<std::string, std::string>, std::vector<ChartPoint>> lines;
  for (const Json& row : rows) {
    const Json& nodes = MemberAt(row, "nodes");
    const Json& value = MemberAt(row, member);
    if (!nodes.is_number() || !value.is_number()) continue;
    lines[{TextOf(row, "benchmark"),
           absl::StrCat(TextOf(row, "organization"), ", ", TextOf(row, "round"))}]
        .push_back({nodes.get<double>(), value.get<double>()});
  }
  std::vector<ScalingLine> sorted;
  for (auto& [key, points] : lines) {
    std::sort(points.begin(), points.end(),
              [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    sorted.push_back({key.first, key.second, std::move(points)});
  }
  return sorted;
}

// From the point with the fewest nodes of all: twice the nodes, half the time.
std::vector<ChartPoint> IdealLine(const std::vector<ChartLine>& lines, bool is_time) {
  const ChartPoint* first = nullptr;
  double most = 0;
  for (const ChartLine& line : lines)
    for (const ChartPoint& point : line.points) {
      if (first == nullptr || point.x < first->x ||
          (point.x == first->x && (point.y < first->y) == is_time))
        first = &point;
      most = std::max(most, point.x);
    }
  if (first == nullptr || most <= first->x) return {};
  const double ratio = most / first->x;
  return {*first, {most, is_time ? first->y / ratio : first->y * ratio}};
}

void AddScalingChart(const Json& rows, const char* member, bool is_time, PageView* view) {
  std::map<std::string, std::vector<ChartLine>> by_benchmark;
  for (ScalingLine& line : LinesOfScaling(rows, member))
    by_benchmark[line.benchmark].push_back(
        {.name = line.name, .points = std::move(line.points), .is_scatter = true});
  size_t number = 0;
  for (auto& [benchmark, lines] : by_benchmark) {
    if (lines.size() > kLinesMax) lines.resize(kLinesMax);
    LineChart chart{
        .id = absl::StrCat(is_time ? "strong-" : "weak-", number++),
        .title = absl::StrCat(benchmark,
                              is_time ? ": time to solution by nodes" : ": throughput by nodes"),
        .description =
            "Both axes are logarithmic; the dotted line is ideal scaling from the smallest "
            "machine. The table below has the numbers.",
        .x = {.label = is_time ? "nodes" : "nodes of an instance", .is_log = true},
        .y = {.label = is_time ? "minutes to solution" : "models per minute", .is_log = true},
        .lines = lines,
        .ideal = IdealLine(lines, is_time),
        .ideal_name = "ideal: twice the nodes, half the time"};
    if (!is_time) chart.ideal.clear();
    view->main.Raw("<h3>").Text(benchmark).Raw("</h3>").Add(DrawLines(chart));
  }
}

}  // namespace

absl::StatusOr<Response> ScalingPage(const Context& context, const Request& request) {
  const std::string asked = request.query.First("filter");
  constexpr char kScored[] = "(minutes>0 OR models_per_minute>0)";
  ASSIGN_OR_RETURN(
      const EntryAnswer answer,
      FindEntries(context,
                  {.filter = asked.empty() ? kScored : absl::StrCat(kScored, " (", asked, ")"),
                   .order_by = "nodes",
                   .limit = 1000}));
  PageView view{.title = "Scaling", .crumbs = {{"Results", "/"}}};
  const Json& scored = answer.rows;
  view.table = {.caption = "Entries with a score, by nodes",
                .empty = "No entry with a score fits.",
                .columns = ChosenColumns(request),
                .rows = scored};
  view.json = {{"filter", answer.filter}, {"items", scored}};
  Html& main = view.main;
  main.Raw(
      "<h1>Scaling</h1><p class=\"sub\">Compare within a benchmark, a round and a division: "
      "name them in the filter.</p>");
  main.Add(EntryListForm(request, {}));
  main.Add(AnswerNote(answer));
  const auto has = [&scored](const char* member) {
    return std::any_of(scored.begin(), scored.end(),
                       [member](const Json& row) { return MemberAt(row, member).is_number(); });
  };
  if (has("minutes")) main.Raw("<h2 id=\"strong\">Time to solution</h2>");
  AddScalingChart(scored, "minutes", true, &view);
  if (has("models_per_minute")) main.Raw("<h2 id=\"weak\">Throughput</h2>");
  AddScalingChart(scored, "models_per_minute", false, &view);
  main.Raw("<h2 id=\"numbers\">The numbers</h2>").Add(TableHtml(view.table));
  main.Add(ScoreFootnotes("the round that each names"));
  return Render(context, request, view);
}

}  // namespace assay::web
