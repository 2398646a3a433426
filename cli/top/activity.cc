#include "cli/top/activity.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int kPageSize = 1000;
constexpr int64_t kRunsMax = 1000;  // in each state
constexpr const char* kStates[] = {"uploading", "running", "assigned"};
constexpr size_t kEntriesKept = 1000;

// A key, the figure that it means, empty: the name.
struct SortKey {
  const char* name;
  const char* figure;
};
constexpr SortKey kSortKeys[] = {{"cpu", "run_cpu_share"},
                                 {"others", "other_cpu_share"},
                                 {"memory", "memory_used_bytes"},
                                 {"read", "storage_read_bytes_per_s"},
                                 {"written", "storage_written_bytes_per_s"},
                                 {"received", "network_received_bytes_per_s"},
                                 {"sent", "network_sent_bytes_per_s"},
                                 {"gpu", "gpu_share"},
                                 {"gpu-power", "gpu_watts"},
                                 {"power", "node_watts"},
                                 {"name", ""}};

std::optional<double> FigureOf(const Json& node, const std::string& figure) {
  const auto figures = node.find("figures");
  if (figures == node.end()) return std::nullopt;
  const auto value = figures->find(figure);
  return value == figures->end() || !value->is_number() ? std::nullopt
                                                        : std::optional(value->get<double>());
}

// The nodes come by name, which decides where figures are equal.
void SortNodes(absl::string_view key, Json* nodes) {
  const auto found = std::find_if(std::begin(kSortKeys), std::end(kSortKeys),
                                  [key](const SortKey& row) { return row.name == key; });
  if (found == std::end(kSortKeys) || *found->figure == 0) return;
  const std::string figure = found->figure;
  constexpr double kLast = -std::numeric_limits<double>::infinity();
  std::stable_sort(nodes->begin(), nodes->end(), [&](const Json& a, const Json& b) {
    return FigureOf(a, figure).value_or(kLast) > FigureOf(b, figure).value_or(kLast);
  });
}

// With what its entry and the node of rank 0 say of it.
Json LiveRunJson(const v1::Run& run, const Activity& activity,
                 const std::map<std::string, const v1::Worker*>& nodes, absl::Time now) {
  Json json = client::RunJson(run);
  if (const auto entry = activity.entries.find(run.submission()); entry != activity.entries.end()) {
    json["benchmark"] = entry->second.spec().benchmark();
    json["organization"] = entry->second.spec().organization();
  }
  json["node_count"] = run.workers_size();
  if (run.has_start_time())
    json["elapsed_seconds"] = absl::ToInt64Seconds(
        std::max(absl::ZeroDuration(), now - absl::FromUnixSeconds(run.start_time().seconds())));
  if (run.workers_size() == 0) return json;
  const auto first = nodes.find(run.workers(0));
  if (first == nodes.end() || first->second->run() != run.name()) return json;
  const v1::NodeFigures& figures = first->second->figures();
  if (figures.has_epoch()) json["epoch"] = figures.epoch();
  if (figures.has_quality()) json["quality"] = figures.quality();
  return json;
}

std::vector<Column> ActivityRunColumns() {
  return {{"RUN", "id"},
          {"ENTRY", "entry"},
          {"BENCHMARK", "benchmark", Format::kText, 3},
          {"ORGANIZATION", "organization", Format::kText, 5},
          {"STATE", "state", Format::kState},
          {"NODES", "node_count", Format::kNumber, 4},
          {"EPOCH", "epoch", Format::kNumber, 2},
          {"QUALITY", "quality", Format::kNumber, 1},
          {"TIME", "elapsed_seconds", Format::kElapsed}};
}

size_t CountOf(const Json& items, const char* field, absl::string_view value) {
  return static_cast<size_t>(std::count_if(items.begin(), items.end(), [&](const Json& item) {
    return item.value(field, "") == value;
  }));
}

std::string Counted(size_t count, absl::string_view one, absl::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

// "2 runs on 16 of 128 nodes, 1 suspect, 2 lost": of the runs that the caller may see.
std::string SummaryOf(const Json& activity) {
  const Json& runs = activity.at("runs");
  const Json& nodes = activity.at("nodes");
  std::set<std::string> ids;
  for (const Json& run : runs)
    ids.insert(run.at("id"));
  const auto busy =
      static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), [&ids](const Json& node) {
        return ids.contains(node.value("run", ""));
      }));
  std::string text = runs.empty()
                         ? absl::StrCat("no run goes on; ", Counted(nodes.size(), "node", "nodes"))
                         : absl::StrCat(Counted(runs.size(), "run", "runs"), " on ", busy, " of ",
                                        Counted(nodes.size(), "node", "nodes"));
  for (const char* state : {"suspect", "lost", "draining"})
    if (const size_t count = CountOf(nodes, "state", state); count > 0)
      absl::StrAppend(&text, ", ", count, " ", state);
  return text;
}

// The first `rows` lines' worth of a table; the last of these counts what is left out.
void AppendTable(const Json& items, const std::vector<Column>& columns, size_t rows,
                 const Environment& env, const PrintOptions& options,
                 std::vector<std::string>* lines) {
  if (items.empty() || rows == 0) return;
  const size_t shown = items.size() <= rows ? items.size() : rows - 1;
  Json part = Json::array();
  for (size_t i = 0; i < shown; ++i)
    part.push_back(items[i]);
  lines->emplace_back();
  std::ostringstream text;
  Environment local = env;
  local.out = &text;
  const Printer printer(&local, options);
  if (!part.empty() && printer.List({.items = part, .columns = columns}).ok())
    for (const absl::string_view line : absl::StrSplit(text.str(), '\n', absl::SkipEmpty()))
      lines->emplace_back(line);
  if (shown < items.size())
    lines->push_back(
        printer.style().Paint(absl::StrCat(items.size() - shown, " more"), Tone::kFaint));
}

}  // namespace

std::vector<std::string> NodeSortKeys() {
  std::vector<std::string> names;
  for (const SortKey& key : kSortKeys)
    names.emplace_back(key.name);
  return names;
}

absl::StatusOr<Activity> ActivityReader::Read() {
  Activity activity;
  for (const char* state : kStates) {
    ASSIGN_OR_RETURN(const std::vector<v1::Run> runs,
                     client::ListRunsOf(client_, "", state, kRunsMax));
    activity.runs.insert(activity.runs.end(), runs.begin(), runs.end());
  }
  v1::ListWorkersRequest request;
  request.set_page_size(kPageSize);
  request.set_is_brief(true);
  do {
    ASSIGN_OR_RETURN(const v1::ListWorkersResponse page, client_.Call(request));
    for (const v1::Worker& worker : page.workers())
      if (worker.state() != v1::Worker::GONE) activity.nodes.push_back(worker);
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  if (entries_.size() > kEntriesKept) entries_.clear();
  for (const v1::Run& run : activity.runs) {
    if (entries_.contains(run.submission())) continue;
    ASSIGN_OR_RETURN(entries_[run.submission()],
                     client::GetEntry(client_, client::ShortId(run.submission())));
  }
  activity.entries = entries_;
  return activity;
}

Json ActivityJson(const Activity& activity, absl::string_view key, absl::Time now) {
  std::map<std::string, const v1::Worker*> by_name;
  Json nodes = Json::array();
  for (const v1::Worker& node : activity.nodes) {
    by_name[node.name()] = &node;
    nodes.push_back(client::NodeJson(node));
  }
  SortNodes(key, &nodes);
  Json runs = Json::array();
  std::set<std::string> known;  // one that went on between two requests is in both answers
  for (const v1::Run& run : activity.runs)
    if (known.insert(run.name()).second) runs.push_back(LiveRunJson(run, activity, by_name, now));
  return {{"runs", std::move(runs)}, {"nodes", std::move(nodes)}};
}

std::vector<Column> NodeColumns() {
  return {{"NODE", "id"},
          {"STATE", "state", Format::kState, 2},
          {"RUN", "run", Format::kText, 1},
          {"CPU", "figures.run_cpu_share", Format::kPercent},
          {"OTHERS", "figures.other_cpu_share", Format::kPercent, 3},
          {"MEMORY", "figures.memory_used_bytes", Format::kBytes, 4},
          {"GPU", "figures.gpu_share", Format::kPercent, 3},
          {"GPU W", "figures.gpu_watts", Format::kNumber, 7},
          {"NODE W", "figures.node_watts", Format::kNumber, 6},
          {"READ/s", "figures.storage_read_bytes_per_s", Format::kBytes, 4},
          {"WRITE/s", "figures.storage_written_bytes_per_s", Format::kBytes, 5},
          {"IN/s", "figures.network_received_bytes_per_s", Format::kBytes, 5},
          {"OUT/s", "figures.network_sent_bytes_per_s", Format::kBytes, 6},
          {"AGE", "figures.age_seconds", Format::kSeconds, 6}};
}

std::vector<std::string> ActivityLines(const Json& activity, const Environment& env,
                                       const PrintOptions& options, size_t height_max,
                                       absl::string_view problem) {
  const Style style(options.has_color, env.IsUtf8(), env.style_key);
  std::vector<std::string> lines = {Truncate(SummaryOf(activity), env.width, style.is_utf8())};
  if (!problem.empty())
    lines.push_back(style.Paint(Truncate(problem, env.width, style.is_utf8()), Tone::kBad));
  const Json& runs = activity.at("runs");
  const Json& nodes = activity.at("nodes");
  // Each table has a line above it and one with titles.
  const size_t taken = lines.size() + (runs.empty() ? 0 : 2) + (nodes.empty() ? 0 : 2);
  const size_t rows = height_max > taken ? height_max - taken : 0;
  const size_t run_rows =
      std::min(runs.size(), std::max(rows / 2, rows - std::min(rows, nodes.size())));
  AppendTable(runs, ActivityRunColumns(), run_rows, env, options, &lines);
  AppendTable(nodes, NodeColumns(), std::min(nodes.size(), rows - run_rows), env, options, &lines);
  return lines;
}

}  // namespace assay::cli
