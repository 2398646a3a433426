#include "cli/entry/set.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "cli/command/context.h"
#include "cli/command/filter_terms.h"
#include "cli/entry/entry.h"
#include "cli/terminal/resource_columns.h"
#include "common/analysis/node_spread.h"
#include "common/client/entry_score.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/client/resource_json.h"
#include "common/client/score_parts.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int kListedMax = 50;
constexpr char kWeakScaling[] = "weak";

const std::vector<Column>& SetColumns() {
  static const auto* const kColumns =
      new std::vector<Column>{{"ID", "id"},
                              {"ENTRY", "entry"},
                              {"STATE", "state", Format::kState},
                              {"RUNS", "run_count", Format::kNumber},
                              {"NODES", "nodes", Format::kNumber, 2},
                              {"BENCHMARK", "benchmark", Format::kText, 2},
                              {"ROUND", "round", Format::kText, 3},
                              {"SCORE", "score_minutes", Format::kMinutes},
                              {"CREATED", "created", Format::kTime, 4}};
  return *kColumns;
}

absl::StatusOr<ExitStatus> RunSetList(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const int64_t limit, ListLimit(*context, arguments));
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries,
                   client::ListEntries(*client, RequestFrom(arguments), limit));
  ListView view{.schema = "assay.set/v1",
                .columns = SetColumns(),
                .empty_text = "no run sets; 'assay submit FILE' makes one"};
  for (const v1::Submission& entry : entries)
    view.items.push_back(client::SetJson(entry));
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

// The machines of a run in rank order.
std::vector<std::string> NodesOf(const v1::Run& run) {
  std::vector<std::string> nodes(run.node_names().begin(), run.node_names().end());
  if (!nodes.empty()) return nodes;
  for (const std::string& worker : run.workers())
    nodes.push_back(client::ShortId(worker));
  return nodes;
}

// Whether all runs that were placed used the same nodes in the same order.
bool IsOnSameNodes(const std::vector<v1::Run>& runs) {
  std::set<std::vector<std::string>> gangs;
  for (const v1::Run& run : runs)
    if (run.workers_size() > 0) gangs.insert(NodesOf(run));
  return gangs.size() <= 1;
}

absl::StatusOr<ExitStatus> RunSetShow(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, client::AllRunsOf(*client, entry.name()));
  ShowView view{.schema = "assay.set/v1",
                .value = client::SetJson(entry),
                .fields = {{"set", "id"},
                           {"entry", "entry"},
                           {"state", "state", Format::kState},
                           {"runs", "run_count"},
                           {"nodes", "nodes"},
                           {"same nodes", "same_nodes", Format::kYesNo},
                           {"score", "score_minutes", Format::kMinutes},
                           {"created", "created", Format::kTime}},
                .sections = {{"Runs", "run_details", RunColumns()},
                             {"Findings", "findings", FindingColumns()}}};
  const bool is_placed = std::any_of(runs.begin(), runs.end(),
                                     [](const v1::Run& run) { return run.workers_size() > 0; });
  // Instances of a throughput set run side by side, each on nodes of its own.
  if (is_placed && entry.scaling() != kWeakScaling) view.value["same_nodes"] = IsOnSameNodes(runs);
  if (entry.findings_size() > 0) view.value["findings"] = client::EntryJson(entry)["findings"];
  view.value["run_details"] = Json::array();
  for (const v1::Run& run : runs)
    view.value["run_details"].push_back(client::RunJson(run));
  RETURN_IF_ERROR(context->printer().Show(view));
  return ExitStatus::kDone;
}

// Which runs of more than the round demands make up the score.
absl::StatusOr<ExitStatus> RunSetWindow(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Submission entry, client::GetEntry(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, client::AllRunsOf(*client, entry.name()));
  const client::EntryScore score = client::ScoreOfEntry(entry, runs);
  ShowView view{.schema = "assay.window/v1",
                .value = client::WindowJson(score.window),
                .fields = {{"set", "id"},
                           {"state", "state", Format::kState},
                           {"runs of the window", "run_count"},
                           {"windows", "window_count"},
                           {"  with a score", "scored_window_count"},
                           {"score", "score_minutes", Format::kMinutes},
                           {"median of all", "median_minutes", Format::kMinutes},
                           {"why these", "explanation"}},
                .sections = {{"Runs",
                              "run_details",
                              {{"RUN", "id"},
                               {"NO", "number", Format::kNumber},
                               {"STATE", "state", Format::kState},
                               {"TIME", "seconds", Format::kSeconds},
                               {"PART", "part"}}}}};
  view.value["id"] = client::SetJson(entry)["id"];
  view.value["state"] = client::StateText(entry.state());
  for (size_t i = 0; i < runs.size(); ++i) {
    Json run = client::RunJson(runs[i]);
    Json row = {{"part", score.parts[i]}};
    for (const char* field : {"id", "number", "state", "seconds"})
      if (run.contains(field)) row[field] = std::move(run[field]);
    view.value["run_details"].push_back(std::move(row));
  }
  RETURN_IF_ERROR(context->printer().Show(view));
  return ExitStatus::kDone;
}

// ---------------------------------------------------------------------------------------- spread

// What runs must have in common for their times to be compared.
std::string KindOf(const v1::Submission& entry, const v1::Run& run) {
  const v1::SubmissionSpec& spec = entry.spec();
  std::string kind =
      absl::StrCat(spec.benchmark(), " of ", spec.round(), " on ", spec.system(), ", ",
                   spec.node_count(), spec.node_count() == 1 ? " node" : " nodes");
  if (entry.scaling() == kWeakScaling) absl::StrAppend(&kind, ", side by side");
  if (run.global_batch_size() > 0)
    absl::StrAppend(&kind, ", global batch size ", run.global_batch_size());
  return kind;
}

absl::StatusOr<std::vector<v1::Submission>> ChosenEntries(const client::Client& client,
                                                          const Arguments& arguments) {
  const std::vector<std::string> ids = arguments.All("ID");
  if (ids.empty()) {
    ASSIGN_OR_RETURN(const int64_t limit, arguments.Integer("limit", kListedMax));
    return client::ListEntries(client, RequestFrom(arguments), limit);
  }
  std::vector<v1::Submission> entries;
  for (const std::string& id : ids) {
    ASSIGN_OR_RETURN(v1::Submission entry, client::GetEntry(client, id));
    entries.push_back(std::move(entry));
  }
  return entries;
}

struct TimedRuns {
  std::string kind;
  std::vector<analysis::PlacedRun> runs;
};

absl::StatusOr<TimedRuns> ReadTimes(const client::Client& client,
                                    const std::vector<v1::Submission>& entries) {
  TimedRuns timed;
  std::set<std::string> kinds;
  for (const v1::Submission& entry : entries) {
    ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, client::AllRunsOf(client, entry.name()));
    for (const v1::Run& run : runs) {
      const std::optional<double> seconds = client::TimeToSolutionSeconds(run);
      if (!seconds.has_value() || run.epoch_count() <= 0 || run.workers_size() == 0) continue;
      kinds.insert(KindOf(entry, run));
      timed.runs.push_back({.set = entry.name(),
                            .nodes = NodesOf(run),
                            .start_ms = run.run_start_ms(),
                            .run_s = *seconds,
                            .epochs = static_cast<double>(run.epoch_count())});
    }
  }
  if (kinds.size() > 1)
    return absl::InvalidArgumentError(
        absl::StrCat("these runs are of ", kinds.size(),
                     " kinds, whose times do not compare: ", absl::StrJoin(kinds, "; "),
                     ". Choose some by id, or by --benchmark, --round and --system"));
  if (!kinds.empty()) timed.kind = *kinds.begin();
  return timed;
}

Json SpreadJson(const std::vector<analysis::SpreadRow>& rows, const char* what) {
  const auto percent = [](double ratio) { return (ratio - 1) * 100; };
  Json items = Json::array();
  for (const analysis::SpreadRow& row : rows) {
    Json item = {{what, row.name},
                 {"runs", row.ratio.count},
                 {"mean_percent", percent(row.ratio.mean)},
                 {"min_percent", percent(row.ratio_min)},
                 {"max_percent", percent(row.ratio_max)}};
    if (row.ratio.sd.has_value()) item["sd_percent"] = *row.ratio.sd * 100;
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<Column> SpreadColumns(const char* title, const char* what) {
  return {{title, what},
          {"RUNS", "runs", Format::kNumber},
          {"MEAN %", "mean_percent", Format::kNumber},
          {"SD %", "sd_percent", Format::kNumber},
          {"MIN %", "min_percent", Format::kNumber},
          {"MAX %", "max_percent", Format::kNumber}};
}

absl::StatusOr<ExitStatus> RunSetSpread(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const std::vector<v1::Submission> entries, ChosenEntries(*client, arguments));
  ASSIGN_OR_RETURN(const TimedRuns timed, ReadTimes(*client, entries));
  if (timed.runs.empty())
    return absl::NotFoundError(
        "none of these entries has a run of this coordinator with a time to solution; 'assay set "
        "list' shows what there is");
  const analysis::SpreadReport report = analysis::SpreadOf(timed.runs);
  ShowView view{.schema = "assay.spread/v1",
                .value = {{"runs_of", timed.kind},
                          {"set_count", report.set_count},
                          {"run_count", report.run_count},
                          {"epoch_seconds_median", report.epoch_s_median},
                          {"nodes", SpreadJson(report.by_node, "node")},
                          {"positions", SpreadJson(report.by_position, "position")}},
                .fields = {{"runs of", "runs_of"},
                           {"sets", "set_count"},
                           {"runs", "run_count"},
                           {"seconds per epoch, median", "epoch_seconds_median", Format::kNumber},
                           {"standard deviation", "epoch_seconds_sd", Format::kNumber}},
                .sections = {{"By node: seconds per epoch beside the median of all", "nodes",
                              SpreadColumns("NODE", "node")},
                             {"By position: seconds per epoch beside the median of the set",
                              "positions", SpreadColumns("POSITION", "position")}}};
  if (report.epoch_s.sd.has_value()) view.value["epoch_seconds_sd"] = *report.epoch_s.sd;
  RETURN_IF_ERROR(context->printer().Show(view));
  return ExitStatus::kDone;
}

}  // namespace

std::vector<Command> SetCommands() {
  return {
      {.path = "set list",
       .summary = "list run sets, newest first",
       .options = FilterOptions(),
       .examples = {{"assay set list --state running", ""}},
       .run = RunSetList},
      {.path = "set show",
       .summary = "show a run set with its runs and their nodes",
       .description = "All runs of a set use the same nodes in the same order. Where a node was "
                      "lost or drained in between, another took its place: finding R-SET-001.",
       .positionals = {{.name = "ID", .help = "s-42 or @last", .completes = Completes::kSet}},
       .examples = {{"assay set show s-42", ""}},
       .run = RunSetShow},
      {.path = "set window",
       .summary = "which runs of a set make up its score, and why",
       .description =
           "A set may have more runs than its round demands. Of all windows of so many consecutive "
           "runs the one nearest the median of all is scored: nobody chooses, so the number of "
           "runs is said when the entry is submitted and does not change afterwards.",
       .positionals = {{.name = "ID",
                        .help = "s-42 or @last",
                        .is_required = false,
                        .completes = Completes::kSet}},
       .examples = {{"assay set window s-42", ""}},
       .run = RunSetWindow},
      {.path = "set spread",
       .summary = "how run times spread over nodes and positions",
       .description =
           "Seconds per epoch of runs that compare: one benchmark, round, system, number of nodes "
           "and batch size. By node over all runs in whose gang it was; nodes that always run "
           "together cannot be told apart. By position in the set: whether first runs are slower.",
       .positionals = {{.name = "ID",
                        .help = "sets or entries; without any, those that the options choose",
                        .is_required = false,
                        .is_repeated = true}},
       .options = FilterOptions(),
       .examples = {{"assay set spread s-42 s-43 s-44", ""},
                    {"assay set spread --system cluster-a --round hpc-3.0.0 --limit 200", ""},
                    {"assay set spread @last --jq '.nodes[0]'", "the slowest node"}},
       .run = RunSetSpread}};
}

}  // namespace assay::cli
