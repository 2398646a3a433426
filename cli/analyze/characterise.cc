#include "cli/analyze/characterise.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "cli/command/context.h"
#include "cli/run/run_bytes.h"
#include "cli/run/run_profile.h"
#include "cli/run/run_telemetry.h"
#include "cli/terminal/sparkline.h"
#include "common/client/artifacts.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/json_document.h"
#include "common/program_contract.h"
#include "common/status.h"
#include "common/telemetry/resource_use.h"

namespace assay::cli {
namespace {

constexpr size_t kPartCountMax = 24;

// What a node can do at most, as it was measured.
struct Peak {
  double value = 0;
  std::string source;
};

// A resource in a phase: the mean over the nodes, and the highest of any.
struct Row {
  std::string resource;
  std::string phase;
  std::string unit;
  double seconds = 0;
  double mean = 0;
  std::optional<double> highest;
  int node_count = 0;
};

// One resource of all nodes, phase by phase, in the order in which they came.
struct Resource {
  std::vector<Row> rows;
  std::vector<std::optional<double>> course;  // sum over the nodes
};

using Resources = std::vector<std::pair<std::string, Resource>>;

Resource* FindOrAdd(const std::string& name, Resources* resources) {
  for (auto& [known, resource] : *resources)
    if (known == name) return &resource;
  return &resources->emplace_back(name, Resource{}).second;
}

void AddPhase(const telemetry::ResourceUse& use, const telemetry::PhaseUse& phase,
              Resource* resource) {
  auto row = std::find_if(resource->rows.begin(), resource->rows.end(),
                          [&phase](const Row& known) { return known.phase == phase.phase; });
  if (row == resource->rows.end())
    row = resource->rows.insert(
        row, Row{.resource = use.resource, .phase = phase.phase, .unit = use.unit});
  // The mean of the nodes so far and this one.
  row->mean += (phase.mean - row->mean) / ++row->node_count;
  row->seconds = std::max(row->seconds, phase.seconds);
  row->highest = std::max(row->highest.value_or(0), phase.highest);
}

void AddUse(const telemetry::ResourceUse& use, Resources* resources) {
  Resource* const resource = FindOrAdd(use.resource, resources);
  for (const telemetry::PhaseUse& phase : use.phases)
    AddPhase(use, phase, resource);
  resource->course.resize(std::max(resource->course.size(), use.course.size()));
  for (size_t part = 0; part < use.course.size(); ++part)
    if (use.course[part].has_value())
      resource->course[part] = resource->course[part].value_or(0) + *use.course[part];
}

double NumberIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || !found->is_number() ? 0 : found->get<double>();
}

// What the native trainer counted of its own work, of a node of `node_count`.
void AddProfileUse(const Json& profile, int node_count, Resources* resources) {
  const auto add = [&](const char* resource, const char* unit, const char* phase,
                       const char* amount, const char* seconds_of) {
    const double seconds = NumberIn(profile, seconds_of);
    const double all = NumberIn(profile, amount);
    if (seconds <= 0 || all <= 0) return;
    FindOrAdd(resource, resources)
        ->rows.push_back({.resource = resource,
                          .phase = phase,
                          .unit = unit,
                          .seconds = seconds,
                          .mean = all / seconds / node_count,
                          .node_count = node_count});
  };
  add("arithmetic", "GFLOP/s", "training", "train_gflop", "train_s");
  add("arithmetic", "GFLOP/s", "evaluation", "eval_gflop", "eval_s");
  add("memory traffic", "GB/s", "training", "train_gbyte", "train_s");
  add("memory traffic", "GB/s", "evaluation", "eval_gbyte", "eval_s");
}

// By the resource that it limits: the mean of what the nodes' pre-flights measured.
absl::StatusOr<std::map<std::string, Peak>> PreflightPeaks(const client::Client& client,
                                                           const v1::Run& run) {
  const std::pair<const char*, std::pair<const char*, double>> kChecks[] = {
      {"memory", {"memory traffic", 1}},
      {"compute", {"arithmetic", 1}},
      {"dataset-disk", {"storage read", 1}},
      {"fabric", {"network received", 1000}}};  // GB/s
  std::map<std::string, std::vector<double>> values;
  for (const v1::ArtifactRef& file : run.artifacts()) {
    if (!absl::StartsWith(file.file_name(), kPreflightPrefix)) continue;
    ASSIGN_OR_RETURN(const std::string text, client::DownloadArtifact(client, file));
    const Json record = ParseJsonDocument<Json>(text);
    if (!record.is_object() || !record.contains("checks")) continue;
    for (const Json& check : record["checks"]) {
      if (!check.is_object() || !check.contains("check")) continue;
      for (const auto& [name, what] : kChecks)
        if (check["check"] == name && NumberIn(check, "value") > 0)
          values[what.first].push_back(NumberIn(check, "value") * what.second);
    }
  }
  std::map<std::string, Peak> peaks;
  for (const auto& [resource, all] : values) {
    double sum = 0;
    for (const double value : all)
      sum += value;
    peaks[resource] = {sum / static_cast<double>(all.size()), "pre-flight"};
  }
  return peaks;
}

// Of the trainer's own measurements before the clock, where no pre-flight has measured.
void AddProfilePeaks(const Json& profile, int node_count, std::map<std::string, Peak>* peaks) {
  const auto add = [&](const char* resource, const char* name) {
    if (const double all = NumberIn(profile, name); all > 0)
      peaks->emplace(resource, Peak{all / node_count, "trainer, before the clock"});
  };
  add("arithmetic", "peak_gflop_per_s");
  add("memory traffic", "memory_gbyte_per_s");
}

Json ItemOf(const Row& row, const std::map<std::string, Peak>& peaks) {
  Json item{{"resource", row.resource},
            {"phase", row.phase},
            {"seconds", row.seconds},
            {"mean", row.mean}};
  if (row.highest.has_value()) item["highest"] = *row.highest;
  item["unit"] = row.unit;
  const auto peak = peaks.find(row.resource);
  if (peak != peaks.end() && peak->second.value > 0) {
    item["peak"] = peak->second.value;
    item["peak_source"] = peak->second.source;
    item["share"] = row.mean / peak->second.value;
    if (row.highest.has_value()) item["highest_share"] = *row.highest / peak->second.value;
  }
  return item;
}

Json ItemsOf(const Resources& resources, const std::map<std::string, Peak>& peaks,
             const Printer& printer) {
  constexpr int kBarWidth = 12;
  const bool is_utf8 = printer.style().is_utf8();
  Json items = Json::array();
  for (const auto& [name, resource] : resources) {
    bool is_first = true;
    for (const Row& row : resource.rows) {
      Json item = ItemOf(row, peaks);
      if (!printer.IsStructured()) {
        const auto share = item.find("share");
        item["bar"] = share == item.end()
                          ? "not known"
                          : absl::StrFormat("%s %.3g %%", Bar(*share, kBarWidth, is_utf8),
                                            100 * share->get<double>());
        if (is_first) item["course"] = Sparkline(resource.course, is_utf8);
      }
      is_first = false;
      items.push_back(std::move(item));
    }
  }
  return items;
}

std::vector<Column> ColumnsFor(const Printer& printer) {
  std::vector<Column> columns = {{"RESOURCE", "resource"},
                                 {"PHASE", "phase"},
                                 {"SECONDS", "seconds", Format::kNumber, 3},
                                 {"MEAN", "mean", Format::kNumber},
                                 {"HIGHEST", "highest", Format::kNumber},
                                 {"UNIT", "unit"},
                                 {"PEAK", "peak", Format::kNumber}};
  if (printer.IsStructured()) {
    for (const char* field : {"share", "highest_share", "peak_source"})
      columns.push_back({"", field});
    return columns;
  }
  columns.push_back({"MEAN OF PEAK", "bar"});
  columns.push_back({"FROM", "peak_source", Format::kText, 2});
  columns.push_back({"OVER THE RUN", "course", Format::kText, 1});
  return columns;
}

absl::StatusOr<ExitStatus> RunCharacterise(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Run run, client::GetRun(*client, arguments.Get("RUN")));
  ASSIGN_OR_RETURN(const std::vector<NodeTelemetry> nodes, FindTelemetry(*client, run));
  ASSIGN_OR_RETURN(const telemetry::RunPhases phases, RunPhasesOf(*client, run));
  if (!phases.run_start_ms.has_value() || !phases.run_stop_ms.has_value())
    return absl::FailedPreconditionError(
        absl::StrCat("the log of ", client::ShortId(run.name()),
                     " lacks run_start or run_stop, so nothing has a phase"));
  ASSIGN_OR_RETURN(const Json profile, LatestProfile(*client, context->env().interrupt, run));
  const int node_count = std::max(run.workers_size(), static_cast<int>(nodes.size()));
  ASSIGN_OR_RETURN(auto peaks, PreflightPeaks(*client, run));
  Resources resources;
  if (!profile.is_null()) {
    AddProfilePeaks(profile, node_count, &peaks);
    AddProfileUse(profile, node_count, &resources);
  }
  double processors = 0;
  for (const auto& [node, series, clock, foreign] : nodes) {
    for (const telemetry::ResourceUse& use : telemetry::UseOf(series, phases, kPartCountMax))
      AddUse(use, &resources);
    processors += telemetry::ProcessorsOf(series).value_or(0) / static_cast<double>(nodes.size());
  }
  if (processors > 0) peaks["processors"] = {processors, "all of the node's"};
  RETURN_IF_ERROR(
      context->printer().List({.schema = "assay.resource_use/v1",
                               .items = ItemsOf(resources, peaks, context->printer()),
                               .columns = ColumnsFor(context->printer()),
                               .empty_text = "its telemetry has none of these resources"}));
  if (profile.is_null())
    context->Note("arithmetic and traffic through memory are known of the native trainer alone");
  return ExitStatus::kDone;
}

}  // namespace

Command CharacteriseCommand() {
  return {.path = "analyze characterise",
          .summary = "how a run used processors, memory, storage and network in each phase",
          .description =
              "After section 5 of the MLPerf HPC paper: what a node used on average, and at most "
              "between two samples of any node, beside what it can do. Peaks are those of the "
              "pre-flight that the nodes have passed (ADR 0181), of the native trainer's own "
              "measurements before its clock, or not known. Arithmetic and traffic through memory "
              "are counted by the native trainer; everything else comes from telemetry, of any "
              "program. Storage and network count whatever the node moved, by whomever.",
          .positionals = {{.name = "RUN",
                           .help = "r-901 or @last",
                           .is_required = false,
                           .completes = Completes::kRun}},
          .examples = {{"assay analyze characterise r-901", "where the time of a run went"},
                       {"assay analyze characterise @last -o json", "for a plot"}},
          .run = RunCharacterise};
}

}  // namespace assay::cli
