#include "cli/run/run_figure.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/client/log_line.h"
#include "common/status.h"
#include "common/telemetry/run_phases.h"
#include "common/telemetry/summary.h"

namespace assay::cli {
namespace {

constexpr size_t kPanelsMax = 12;
constexpr size_t kPartsMax = 600;       // means of each line
constexpr size_t kNamedNodesMax = 16;   // more make no key that anybody reads
constexpr size_t kEpochLinesMax = 100;  // more make a grey page
constexpr int kPanelHeight = 150;       // pixels
constexpr int kFrame = 70;
constexpr int kGap = 32;  // between panels, for their names

constexpr char kAbove[] = " at graph 0, graph 1 offset 0,0.6 left font ',10'\n";

// Of Okabe and Ito, as in the paper's figures.
constexpr std::array<const char*, 7> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#e69f00", "#56b4e9", "#000000"};

// What is drawn unless something else is asked for: names, or how they begin.
constexpr std::array<const char*, 6> kUsual = {"run.cpu",     "run.memory", "run.read",
                                               "run.written", "energy.",    "power."};

// In place of milliseconds and bytes, what people say.
struct Unit {
  double factor = 1;
  std::string name;
};

Unit UnitOf(const telemetry::Figure& figure) {
  constexpr double kMega = 1e6;
  if (figure.unit == "ms" && figure.is_counter) return {1e-3, "processors"};
  if (figure.unit == "uJ" && figure.is_counter) return {1 / kMega, "W"};
  if (figure.unit == "bytes" && figure.is_counter) return {1 / kMega, "MB/s"};
  if (figure.unit == "bytes") return {1 / (1024.0 * 1024.0 * 1024.0), "GiB"};
  return {1, figure.is_counter ? absl::StrCat(figure.unit, "/s") : figure.unit};
}

bool IsWanted(absl::string_view name, absl::string_view measure) {
  if (!measure.empty()) return absl::StartsWith(name, measure);
  return std::any_of(kUsual.begin(), kUsual.end(),
                     [name](const char* usual) { return absl::StartsWith(name, usual); });
}

// "x y" lines of gnuplot, for each name.
using Lines = std::map<std::string, std::string>;

// Keys of qualities and losses, each with what the log says of it.
Lines QualityLines(const v1::Run& run, absl::string_view log) {
  Lines lines;
  for (const absl::string_view text : absl::StrSplit(log, '\n')) {
    const std::optional<client::LogLine> line = client::ParseLogLine(text);
    double value = 0;
    if (!line.has_value() || !(client::IsQuality(line->key) || line->key == "train_loss") ||
        !absl::SimpleAtod(line->value, &value))
      continue;
    absl::StrAppendFormat(&lines[line->key], "%.6f %.10g\n",
                          static_cast<double>(line->time_ms - run.run_start_ms()) * 1e-3, value);
  }
  return lines;
}

// A measure on all nodes.
struct Panel {
  std::string unit;
  std::vector<std::pair<int, std::string>> nodes;  // with their lines
};

std::string CourseText(const v1::Run& run, const telemetry::Series& series, size_t column,
                       double factor) {
  const int64_t begin_ns = series.at_ns.front();
  const int64_t end_ns = series.at_ns.back();
  const size_t count = telemetry::PartCountOf(begin_ns, end_ns, kPartsMax);
  const std::vector<std::optional<double>> course =
      telemetry::CourseOf(series, column, begin_ns, end_ns, count);
  std::string text;
  for (size_t i = 0; i < course.size(); ++i) {
    const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(course.size());
    const auto at_ns =
        begin_ns + static_cast<int64_t>(static_cast<double>(end_ns - begin_ns) * part);
    // An empty line ends a line of the figure: nobody knows what was there.
    if (course[i].has_value()) {
      absl::StrAppendFormat(&text, "%.6f %.10g\n", SecondsOfRun(run, series.header, at_ns),
                            *course[i] * factor);
    } else {
      text += "\n";
    }
  }
  return text;
}

std::map<std::string, Panel> PanelsOf(const v1::Run& run, const std::vector<NodeTelemetry>& nodes,
                                      const std::string& measure) {
  std::map<std::string, Panel> panels;
  for (const NodeTelemetry& node : nodes) {
    if (node.series.at_ns.empty()) continue;
    for (const telemetry::Figure& figure :
         telemetry::Summarize(node.series, node.series.at_ns.front(), node.series.at_ns.back())) {
      if (!IsWanted(figure.name, measure)) continue;
      const Unit unit = UnitOf(figure);
      Panel& panel = panels[figure.name];
      panel.unit = unit.name;
      panel.nodes.emplace_back(node.node, CourseText(run, node.series, figure.column, unit.factor));
    }
  }
  return panels;
}

// Writes a figure's data blocks and panels.
class Page {
 public:
  explicit Page(size_t panel_count) : panel_count_(panel_count) {}

  // Losses have an axis of their own.
  void AddQuality(const Lines& lines) {
    std::vector<std::string> elements;
    bool has_loss = false;
    for (const auto& [key, data] : lines) {
      const bool is_loss = absl::StrContains(key, "loss");
      has_loss |= is_loss;
      elements.push_back(absl::StrCat(Block(data), " using 1:2 axes ", is_loss ? "x1y2" : "x1y1",
                                      " with linespoints pt 7 ps 0.4 lc rgb '", NextColor(),
                                      "' title ", PlotText(key)));
    }
    Add(absl::StrCat("set label 1 ", PlotText("quality and loss"), kAbove, "set ylabel 'quality'\n",
                     has_loss ? "set y2label 'loss'\nset y2tics\n" : "unset y2label\n"),
        elements);
    commands_ += "unset y2tics\nunset y2label\n";
  }

  void AddMeasure(const std::string& name, const Panel& panel) {
    std::vector<std::string> elements;
    for (const auto& [node, data] : panel.nodes)
      elements.push_back(absl::StrCat(Block(data), " using 1:2 with lines lw 1.2 lc rgb '",
                                      kColors[static_cast<size_t>(node) % kColors.size()], "' ",
                                      panel.nodes.size() <= kNamedNodesMax
                                          ? absl::StrCat("title 'node ", node, "'")
                                          : "notitle"));
    Add(absl::StrCat("set label 1 ", PlotText(name), kAbove, "set ylabel ", PlotText(panel.unit),
                     "\n"),
        elements);
  }

  std::string Finish(const std::string& before) const {
    return absl::StrCat(data_, before, commands_, "unset multiplot\n");
  }

 private:
  const char* NextColor() { return kColors[color_++ % kColors.size()]; }

  std::string Block(const std::string& data) {
    const std::string name = absl::StrCat("$data", block_++);
    absl::StrAppend(&data_, name, " << EOD\n", data, "EOD\n");
    return name;
  }

  // From the top of the page down; the lowest names the axis that all share.
  void Add(const std::string& settings, const std::vector<std::string>& elements) {
    const double whole = kFrame + kPanelHeight * static_cast<double>(panel_count_);
    const double top = 1 - (kGap + kPanelHeight * static_cast<double>(panel_)) / whole;
    ++panel_;
    absl::StrAppendFormat(&commands_, "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
                          top, top - (kPanelHeight - kGap) / whole);
    absl::StrAppend(&commands_, settings,
                    panel_ == panel_count_
                        ? "set format x '%g'\nset xlabel 'seconds from run_start'\n"
                        : "set format x ''\nunset xlabel\n",
                    "plot ", absl::StrJoin(elements, ", \\\n  "), "\n");
  }

  const size_t panel_count_;
  size_t panel_ = 0;
  size_t block_ = 0;
  size_t color_ = 0;
  std::string data_;
  std::string commands_;
};

// All panels show the same time; each epoch begins at a line, as does the run.
std::string AxisOf(const v1::Run& run, absl::string_view log,
                   const std::vector<NodeTelemetry>& nodes) {
  double begin_s = 0;
  double end_s = 0;
  for (const NodeTelemetry& node : nodes) {
    if (node.series.at_ns.empty()) continue;
    begin_s = std::min(begin_s, SecondsOfRun(run, node.series.header, node.series.at_ns.front()));
    end_s = std::max(end_s, SecondsOfRun(run, node.series.header, node.series.at_ns.back()));
  }
  std::string text = absl::StrFormat(
      "set multiplot\nset lmargin at screen 0.09\nset rmargin at screen 0.91\n"
      "set border lc rgb '#666666'\nset grid lc rgb '#e4e4e4' lt 1 lw 0.6\n"
      "set tics nomirror tc rgb '#000000' font ',9' scale 0.6\nset key at graph 1, graph 1.02 "
      "right "
      "bottom horizontal samplen 2 font ',9'\n"
      "set xrange [%.6f:%.6f]\nset yrange [0:*]\n"
      "set arrow from 0, graph 0 to 0, graph 1 nohead lc rgb '#666666' dt 2\n",
      begin_s, std::max(end_s, begin_s + 1));
  const std::vector<telemetry::Interval> epochs = telemetry::PhasesOf(log).epochs;
  if (epochs.size() > kEpochLinesMax) return text;
  for (const telemetry::Interval& epoch : epochs) {
    const double at_s = static_cast<double>(epoch.begin_ms - run.run_start_ms()) * 1e-3;
    absl::StrAppendFormat(
        &text, "set arrow from %.6f, graph 0 to %.6f, graph 1 nohead lc rgb '#bbbbbb' lw 0.6\n",
        at_s, at_s);
  }
  return text;
}

}  // namespace

absl::StatusOr<Figure> RunFigure(const v1::Run& run, absl::string_view log,
                                 const std::vector<NodeTelemetry>& nodes,
                                 const std::string& measure) {
  const std::map<std::string, Panel> panels = PanelsOf(run, nodes, measure);
  if (panels.empty())
    return absl::NotFoundError(measure.empty()
                                   ? "none of what is usually drawn was measured: choose with "
                                     "--measure"
                                   : absl::StrCat("no measure begins with ", measure));
  if (panels.size() > kPanelsMax)
    return absl::InvalidArgumentError(
        absl::StrCat(panels.size(), " measures begin with ", measure, ", and ", kPanelsMax,
                     " fit on a page: name more of theirs with --measure"));
  const Lines qualities = QualityLines(run, log);
  const size_t panel_count = panels.size() + (qualities.empty() ? 0 : 1);
  Page page(panel_count);
  if (!qualities.empty()) page.AddQuality(qualities);
  for (const auto& [name, panel] : panels)
    page.AddMeasure(name, panel);
  return Figure{.commands = page.Finish(AxisOf(run, log, nodes)),
                .width = 1000,
                .height = kFrame + kPanelHeight * static_cast<int>(panel_count)};
}

}  // namespace assay::cli
