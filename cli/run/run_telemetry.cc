#include "cli/run/run_telemetry.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "cli/command/context.h"
#include "cli/run/run_figure.h"
#include "cli/terminal/plot.h"
#include "cli/terminal/sparkline.h"
#include "common/client/artifacts.h"
#include "common/client/export.h"
#include "common/client/ids.h"
#include "common/client/pages.h"
#include "common/status.h"
#include "common/telemetry/bytes.h"
#include "common/telemetry/disturbance.h"
#include "common/telemetry/summary.h"

namespace assay::cli {
namespace {

// From run_start to run_stop by the node's clock; of a run that has not both, all that there is.
struct Ends {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};
Ends EndsOf(const v1::Run& run, const telemetry::Series& series) {
  if (run.has_run_start_ms() && run.has_run_stop_ms())
    return {telemetry::NodeNsAt(series.header, run.run_start_ms()),
            telemetry::NodeNsAt(series.header, run.run_stop_ms())};
  if (series.at_ns.empty()) return {};
  return {series.at_ns.front(), series.at_ns.back()};
}

std::string ShareText(double share) {
  return absl::StrFormat("%.1f %%", share * 100);
}

// "backup (7) 12 % of a CPU, ...": the first few, for people.
std::string MostByText(const std::vector<telemetry::ForeignUse>& largest) {
  constexpr size_t kShownMax = 3;
  std::string text;
  for (size_t i = 0; i < std::min(largest.size(), kShownMax); ++i)
    absl::StrAppendFormat(&text, "%s%s (%d) %.0f %% of a CPU", i == 0 ? "" : ", ", largest[i].name,
                          largest[i].pid, largest[i].share * 100);
  return text;
}

void AddLargest(const std::vector<telemetry::ForeignUse>& largest, Json* json) {
  if (largest.empty()) return;
  (*json)["most_by"] = MostByText(largest);
  for (const telemetry::ForeignUse& use : largest)
    (*json)["largest"].push_back(
        {{"pid", use.pid}, {"name", use.name}, {"of_a_cpu", ShareText(use.share)}});
}

// Who else used the node.
Json QuietJson(const v1::Run& run, const telemetry::Series& series,
               const std::vector<telemetry::Figure>& figures, const Ends& ends) {
  const telemetry::Quiet shares = telemetry::QuietOf(figures);
  Json json = Json::object();
  if (shares.others.has_value()) json["others"] = ShareText(*shares.others);
  if (const std::optional<telemetry::Minute> worst =
          telemetry::WorstMinute(series, ends.begin_ns, ends.end_ns);
      worst.has_value()) {
    json["worst_minute"] = ShareText(worst->others);
    json["worst_minute_s"] =
        std::round(SecondsOfRun(run, series.header, worst->begin_ns) * 1000) / 1000;
  }
  if (shares.stolen.has_value()) json["stolen"] = ShareText(*shares.stolen);
  const telemetry::BytesRead read =
      telemetry::NodeBytes(&series).Between(ends.begin_ns, ends.end_ns);
  if (read.run.has_value() && read.disks.has_value())
    json["others_read_bytes"] =
        std::llround(std::max(0.0, *read.disks + read.servers.value_or(0) - *read.run));
  return json;
}

// By what each node's times were carried over to the clock of node 0.
Json ClockRows(const std::vector<NodeTelemetry>& nodes) {
  Json rows = Json::array();
  for (const NodeTelemetry& node : nodes) {
    const std::optional<int64_t>& error_ns = node.series.clock_error_ns;
    Json row{{"node", node.node},
             {"aligned_by", error_ns.has_value() ? "offsets" : "wall clock"},
             {"error_seconds", nullptr}};
    if (error_ns.has_value()) row["error_seconds"] = static_cast<double>(*error_ns) * 1e-9;
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::Status DrawRun(const Context& context, const client::Client& client, const v1::Run& run,
                     const std::vector<NodeTelemetry>& nodes, const Arguments& arguments) {
  std::string log;
  if (const v1::ArtifactRef* const file = client::ResultFile(run); file != nullptr) {
    ASSIGN_OR_RETURN(log, client::DownloadArtifact(client, *file));
  }
  ASSIGN_OR_RETURN(const Figure figure, RunFigure(run, log, nodes, arguments.Get("measure")));
  const std::string path = arguments.Get("plot");
  RETURN_IF_ERROR(Draw(context.env(), figure, path));
  context.Note(absl::StrCat("drawn: ", path));
  return absl::OkStatus();
}

absl::StatusOr<ExitStatus> RunRunTelemetry(Context* context, const Arguments& arguments) {
  ASSIGN_OR_RETURN(const client::Client* client, context->Connect());
  ASSIGN_OR_RETURN(const v1::Run run, client::GetRun(*client, arguments.Get("ID")));
  ASSIGN_OR_RETURN(const std::vector<NodeTelemetry> nodes, FindTelemetry(*client, run));
  if (const std::string clocks = ClocksText(nodes); !clocks.empty())
    context->Note(absl::StrCat("clocks: ", clocks));
  const std::string measure = arguments.Get("measure");
  if (arguments.Has("plot")) {
    RETURN_IF_ERROR(DrawRun(*context, *client, run, nodes, arguments));
    return ExitStatus::kDone;
  }
  ListView view{.schema = "assay.telemetry/v1",
                .columns = {{"NODE", "node"},
                            {"SECONDS", "seconds", Format::kMillis},
                            {"MEASURE", "measure"},
                            {"VALUE", "value"},
                            {"UNIT", "unit"}},
                .empty_text = absl::StrCat("no measure begins with ", measure)};
  for (const auto& [node, series, clock, foreign] : nodes) {
    if (!series.damage.empty())
      context->Note(absl::StrCat("node ", node, ": the file is not whole: ", series.damage));
    for (size_t c = 0; c < series.columns.size(); ++c) {
      const telemetry::Column& column = series.header.columns[c];
      if (!absl::StartsWith(column.name, measure)) continue;
      for (size_t i = 0; i < series.at_ns.size(); ++i) {
        if (series.columns[c][i] == telemetry::kMissing) continue;
        view.items.push_back({{"node", node},
                              {"seconds", SecondsOfRun(run, series.header, series.at_ns[i])},
                              {"measure", column.name},
                              {"value", series.columns[c][i]},
                              {"unit", column.unit}});
      }
    }
  }
  RETURN_IF_ERROR(context->printer().List(view));
  return ExitStatus::kDone;
}

}  // namespace

void AddTelemetry(const v1::Run& run, const std::vector<NodeTelemetry>& nodes,
                  const Printer& printer, ShowView* view) {
  constexpr size_t kPartCountMax = 24;
  const bool is_whole = printer.IsStructured();
  Json rows = Json::array();
  Json quiet = Json::array();
  Json disturbances = Json::array();
  for (const auto& [node, series, clock, foreign] : nodes) {
    const Ends ends = EndsOf(run, series);
    const std::vector<telemetry::Figure> figures =
        telemetry::Summarize(series, ends.begin_ns, ends.end_ns);
    const size_t part_count = telemetry::PartCountOf(ends.begin_ns, ends.end_ns, kPartCountMax);
    for (const telemetry::Figure& figure : figures) {
      if (!is_whole && figure.highest == 0) continue;
      Json row{{"node", node},
               {"measure", figure.name},
               {"mean", figure.mean},
               {"highest", figure.highest},
               {"unit", figure.is_counter ? absl::StrCat(figure.unit, "/s") : figure.unit}};
      if (figure.total.has_value()) row["total"] = *figure.total;
      if (!is_whole)
        row["course"] = Sparkline(
            telemetry::CourseOf(series, figure.column, ends.begin_ns, ends.end_ns, part_count),
            printer.style().is_utf8());
      rows.push_back(std::move(row));
    }
    Json row = QuietJson(run, series, figures, ends);
    AddLargest(telemetry::LargestForeign(foreign, ends.begin_ns, ends.end_ns), &row);
    row["node"] = node;
    quiet.push_back(std::move(row));
    for (const std::string& note : telemetry::DisturbancesOf(series, ends.begin_ns, ends.end_ns))
      disturbances.push_back({{"node", node}, {"note", note}});
  }
  view->value["telemetry"] = std::move(rows);
  view->value["telemetry_clocks"] = ClockRows(nodes);
  if (std::string clocks = ClocksText(nodes); !clocks.empty()) {
    view->value["telemetry_clocks_text"] = std::move(clocks);
    view->fields.push_back({"clocks", "telemetry_clocks_text"});
  }
  view->value["quiet"] = std::move(quiet);
  view->value["disturbances"] = std::move(disturbances);
  view->sections.push_back({"What can have slowed the node down, which is no finding",
                            "disturbances",
                            {{"NODE", "node"}, {"NOTE", "note"}}});
  view->sections.push_back({"Who else used the node",
                            "quiet",
                            {{"NODE", "node"},
                             {"OTHERS", "others"},
                             {"IN THE WORST MINUTE", "worst_minute"},
                             {"FROM, S", "worst_minute_s", Format::kNumber},
                             {"A HOST", "stolen"},
                             {"READ BY OTHERS", "others_read_bytes", Format::kBytes},
                             {"MOST BY", "most_by", Format::kText, 1}}});
  view->sections.push_back({"From run_start to run_stop",
                            "telemetry",
                            {{"NODE", "node"},
                             {"MEASURE", "measure"},
                             {"MEAN", "mean", Format::kNumber},
                             {"HIGHEST", "highest", Format::kNumber},
                             {"UNIT", "unit"},
                             {"TOTAL", "total", Format::kNumber},
                             {"OVER THE RUN", "course", Format::kText, 1}}});
}

Command RunTelemetryCommand() {
  return {.path = "run telemetry",
          .summary = "print what the nodes of a run were measured to do, sample by sample",
          .description =
              "Each node of a run is measured once a second: processors, memory, disks, networks, "
              "what the run's own processes use, and meters of energy where it has some. Seconds "
              "count from run_start, those before it are negative: on the clock of node 0, to "
              "which others are carried over by what all measured of the coordinator's, or by "
              "their wall clocks where that is not known; a note says which and how well. "
              "Counters stand as they were read: what matters is by how much they grow.",
          .positionals = {{.name = "ID",
                           .help = "r-901 or @last",
                           .is_required = false,
                           .completes = Completes::kRun}},
          .options = {{.name = "measure",
                       .kind = Option::Kind::kText,
                       .value = "NAME",
                       .help = "only those that begin so"},
                      {.name = "plot",
                       .kind = Option::Kind::kText,
                       .value = "FILE",
                       .help = "draw them below the run's quality and loss instead, into an .svg, "
                               ".png or .pdf file (takes gnuplot)"}},
          .examples = {{"assay run telemetry r-901 --plot r-901.svg",
                        "processors, memory, storage and power beside the loss curve"},
                       {"assay run telemetry r-901 -o csv > telemetry.csv", "for other programs"},
                       {"assay run telemetry @last --measure disk.", "what disks have moved"}},
          .run = RunRunTelemetry};
}

}  // namespace assay::cli
