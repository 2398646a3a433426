#include "cli/analyze/figures.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/analysis/published.h"

namespace assay::cli {
namespace {

using analysis::Characteristics;

bool HasSeveralBenchmarks(std::span<const Characteristics> entries) {
  return std::any_of(entries.begin(), entries.end(), [&](const Characteristics& entry) {
    return entry.entry.benchmark != entries.front().entry.benchmark;
  });
}

// ------------------------------------------------------------------------------------ breakdown

struct Phase {
  const char* name;
  const char* color;
  double analysis::Breakdown::*share;
};
constexpr Phase kPhases[] = {{"staging", "#009e73", &analysis::Breakdown::staging},
                             {"evaluation", "#e69f00", &analysis::Breakdown::evaluation},
                             {"training", "#0072b2", &analysis::Breakdown::training},
                             {"other", "#999999", &analysis::Breakdown::extra}};
constexpr double kBarHalf = 0.36;      // of the distance between two bars
constexpr double kLabelledFrom = 4.0;  // per cent: a number has room from here on

constexpr char kBreakdownStyle[] =
    "set style fill solid 1.0 noborder\n"
    "set title 'Time to solution by phase' font ',13'\n"
    "set xrange [0:100]\n"
    "set xlabel 'share of time to solution [%]'\n"
    "set border 1 lc rgb '#666666'\n"
    "set tics nomirror tc rgb '#000000' scale 0.5\n"
    "set xtics 0,10,100\n"
    "set grid xtics lc rgb '#dddddd' lt 1 lw 0.5\n"
    "set key outside top center horizontal Left reverse samplen 1.5 width 1\n";

// One line for each phase of each bar: y, from, to, phase, the number in it.
std::string BreakdownRows(std::span<const Characteristics* const> entries) {
  std::string rows = "$bars << EOD\n";
  double y = static_cast<double>(entries.size());
  for (const Characteristics* entry : entries) {
    double from = 0;
    for (size_t phase = 0; phase < std::size(kPhases); ++phase) {
      const double share = kHundredPercent * (*entry->breakdown).*kPhases[phase].share;
      const double to = from + std::max(0.0, share);
      absl::StrAppendFormat(&rows, "%g %.6f %.6f %d %.1f\n", y, from, to, phase, share);
      from = to;
    }
    y -= 1;
  }
  return rows + "EOD\n";
}

std::string BreakdownTics(std::span<const Characteristics* const> entries, bool has_benchmark) {
  std::vector<std::string> tics;
  size_t y = entries.size();
  for (const Characteristics* entry : entries) {
    const std::string label = EntryLabel(entry->entry);
    tics.push_back(absl::StrCat(
        PlotText(has_benchmark ? absl::StrCat(entry->entry.benchmark, "  ", label) : label), " ",
        y--));
  }
  return absl::StrCat("set ytics (", absl::StrJoin(tics, ", "), ") scale 0\n");
}

}  // namespace

std::string EntryLabel(const analysis::Entry& entry) {
  const std::string paper = analysis::PaperName(entry);
  if (!paper.empty()) return paper;
  return entry.division == "open" ? absl::StrCat("*", entry.system) : entry.system;
}

absl::StatusOr<Figure> BreakdownFigure(std::span<const Characteristics> entries) {
  std::vector<const Characteristics*> bars;
  for (const Characteristics& entry : entries)
    if (entry.breakdown) bars.push_back(&entry);
  if (bars.empty())
    return absl::FailedPreconditionError("no entry has times to draw: their logs say none");
  std::vector<std::string> elements;
  for (size_t phase = 0; phase < std::size(kPhases); ++phase)
    elements.push_back(absl::StrFormat(
        "$bars using (($4==%d)?$2:NaN):1:2:3:($1-%g):($1+%g) with boxxyerror fc rgb '%s' title %s",
        phase, kBarHalf, kBarHalf, kPhases[phase].color, PlotText(kPhases[phase].name)));
  elements.push_back(absl::StrFormat(
      "$bars using (($3-$2>=%g)?($2+$3)/2:NaN):1:5 with labels tc rgb '#ffffff' font ',9' notitle",
      kLabelledFrom));
  constexpr int kFrame = 115;
  constexpr int kBarHeight = 26;
  return Figure{.commands = absl::StrCat(BreakdownRows(bars), kBreakdownStyle,
                                         "set yrange [0.4:", bars.size(), ".6]\n",
                                         BreakdownTics(bars, HasSeveralBenchmarks(entries)),
                                         "plot ", absl::StrJoin(elements, ", \\\n  ")),
                .width = 1000,
                .height = kFrame + kBarHeight * static_cast<int>(bars.size())};
}

}  // namespace assay::cli
