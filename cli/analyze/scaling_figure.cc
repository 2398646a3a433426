// Figure 2 of the paper: four panels that share their axes.

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "cli/analyze/figures.h"
#include "common/analysis/scaling.h"

namespace assay::cli {
namespace {

using analysis::Characteristics;

constexpr double kSecondsPerHour = 3600;

// Of Okabe and Ito: told apart by the colour-blind, and by their lightness on paper.
constexpr std::array<const char*, 8> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#e69f00", "#56b4e9", "#000000", "#8c6d31"};
constexpr std::array<int, 6> kPointTypes = {7, 5, 9, 11, 13, 15};

constexpr char kAxes[] =
    "set border lc rgb '#666666'\n"
    "set tics nomirror tc rgb '#000000' font ',9' scale 0.6\n"
    "set grid lc rgb '#e4e4e4' lt 1 lw 0.6\n";

// What the figure shows of one entry.
struct Point {
  std::string label;
  double units = 0, batch = 0;
  double epochs = 0, epochs_sd = 0;
  double train = 0, eval = 0, samples = 0;  // per second
  double epochs_per_h = 0;
  double train_samples = 0, epoch_samples = 0;
};

std::vector<Point> PointsOf(std::span<const Characteristics> entries) {
  std::vector<Point> points;
  for (const Characteristics& entry : entries) {
    const analysis::ScalingPoint scaling = analysis::ScalingOf(entry);
    if (!entry.batch_size || !entry.epochs || !scaling.samples_per_s ||
        !scaling.train_samples_per_s || !scaling.eval_samples_per_s)
      continue;
    points.push_back({.label = EntryLabel(entry.entry),
                      .units = static_cast<double>(entry.entry.units()),
                      .batch = *entry.batch_size,
                      .epochs = entry.epochs->mean,
                      .epochs_sd = entry.epochs->sd.value_or(0),
                      .train = *scaling.train_samples_per_s,
                      .eval = *scaling.eval_samples_per_s,
                      .samples = *scaling.samples_per_s,
                      .epochs_per_h = *scaling.epochs_per_h,
                      .train_samples = *scaling.train_samples,
                      .epoch_samples = *scaling.epoch_samples});
  }
  return points;
}

struct Range {
  double low = 0, high = 0;
  bool Holds(double value) const { return value > low && value < high; }
};

// The values of all points with a margin on both sides, in factors.
Range RangeOf(const std::vector<Point>& points, double Point::*value, double margin) {
  Range range = {points.front().*value, points.front().*value};
  for (const Point& point : points) {
    range.low = std::min(range.low, point.*value);
    range.high = std::max(range.high, point.*value);
  }
  return {range.low / margin, range.high * margin};
}

// Round values within a range, of the form m * base^k.
std::vector<double> RoundValues(Range range, double base, const std::vector<double>& mantissas) {
  constexpr int kDecades = 40;
  std::vector<double> values;
  for (int k = -kDecades; k <= kDecades; ++k)
    for (const double mantissa : mantissas)
      if (range.Holds(mantissa * std::pow(base, k))) values.push_back(mantissa * std::pow(base, k));
  return values;
}

std::string Tics(absl::string_view axis, const std::vector<double>& values) {
  return absl::StrCat("set ", axis, "tics (",
                      absl::StrJoin(values, ", ",
                                    [](std::string* out, double value) {
                                      absl::StrAppendFormat(out, "%.10g", value);
                                    }),
                      ")\n");
}

std::string RangeText(absl::string_view axis, Range range) {
  return absl::StrFormat("set %srange [%.10g:%.10g]\n", axis, range.low, range.high);
}

// A family of parallel lines y = x * factor, each with its name where it leaves the panel.
struct Level {
  double factor = 1;
  std::string name;
};

// The lines' plot elements, and labels set for those that end at the top of the panel.
class Levels {
 public:
  Levels(Range x, Range y) : x_(x), y_(y) {}

  void Add(const Level& level) {
    const double at_top = y_.high / level.factor;
    const double at_right = x_.high * level.factor;
    if (!x_.Holds(at_top) && !y_.Holds(at_right)) return;
    elements_.push_back(
        absl::StrFormat("x*%.10g with lines lc rgb '#bbbbbb' dt 3 notitle", level.factor));
    if (level.name.empty()) return;
    if (x_.Holds(at_top * 1.03) && x_.Holds(at_top / 1.03)) {
      AddLabel(level.name, at_top, y_.high, "offset 0,0.5 center");
    } else if (y_.Holds(at_right * 1.15) && y_.Holds(at_right / 1.15)) {
      AddLabel(level.name, x_.high, at_right, "offset -0.5,-0.3 right");
    }
  }
  void Title(absl::string_view text) {
    absl::StrAppend(&labels_, "set label ", next_++, " ", PlotText(text),
                    " at graph 0.5,1 offset 0,1.6 center tc rgb '#777777' font ',9'\n");
  }
  const std::string& labels() const { return labels_; }
  const std::vector<std::string>& elements() const { return elements_; }

 private:
  static constexpr int kFirstLabel = 10;

  void AddLabel(const std::string& name, double x, double y, absl::string_view how) {
    absl::StrAppendFormat(&labels_,
                          "set label %d %s at %.10g,%.10g %s tc rgb '#777777' font ',8'\n", next_++,
                          PlotText(name), x, y, how);
  }

  Range x_, y_;
  int next_ = kFirstLabel;
  std::string labels_;
  std::vector<std::string> elements_;
};

class ScalingPlot {
 public:
  explicit ScalingPlot(std::vector<Point> points) : points_(std::move(points)) {
    units_ = RangeOf(points_, &Point::units, 1.7);
    batch_ = RangeOf(points_, &Point::batch, 1.7);
    epochs_ = RangeOf(points_, &Point::epochs, 1.35);
    samples_ = RangeOf(points_, &Point::samples, 2);
    const Range train = RangeOf(points_, &Point::train, 1.6);
    const Range eval = RangeOf(points_, &Point::eval, 1.6);
    samples_ = {std::min(train.low, samples_.low), std::max(eval.high, samples_.high)};
    // Shared axis: the epoch throughput that these samples make.
    const double factor = kSecondsPerHour / points_.front().epoch_samples;
    per_h_ = {samples_.low * factor, samples_.high * factor};
  }

  // In pixels: the panels, and beside them room for the longest name.
  int width() const {
    constexpr int kPanels = 985;
    constexpr int kSymbol = 45;
    constexpr int kLetter = 7;
    size_t letters = 0;
    for (const Point& point : points_)
      letters = std::max(letters, point.label.size());
    return kPanels + kSymbol + kLetter * static_cast<int>(std::min<size_t>(letters, 100));
  }

  std::string Commands() const {
    return absl::StrCat(
        Data(), kAxes, "set logscale xyy2\nunset key\nset pointsize 1.2\nset multiplot\n",
        Parameters(), EpochScaling(), ThroughputScaling(), ComputeTime(), "unset multiplot\n");
  }

 private:
  std::string Data() const {
    std::string data;
    for (size_t i = 0; i < points_.size(); ++i) {
      const Point& p = points_[i];
      absl::StrAppendFormat(
          &data, "$entry%d << EOD\n%.10g %.10g %.10g %.10g %.10g %.10g %.10g %.10g\nEOD\n", i,
          p.units, p.batch, p.epochs, p.epochs_sd, p.train, p.eval, p.samples, p.epochs_per_h);
    }
    return data;
  }

  // One element for each entry.
  std::string Series(absl::string_view usage, absl::string_view style, bool has_title) const {
    std::vector<std::string> elements;
    for (size_t i = 0; i < points_.size(); ++i)
      elements.push_back(absl::StrCat(
          "$entry", i, " using ", usage, " with ", style, " pt ",
          kPointTypes[i % kPointTypes.size()], " lc rgb '", kColors[i % kColors.size()], "' ",
          has_title ? absl::StrCat("title ", PlotText(points_[i].label)) : "notitle"));
    return absl::StrJoin(elements, ", \\\n  ");
  }

  std::string Panel(absl::string_view name, bool is_right, bool is_upper) const {
    return absl::StrFormat(
        "set lmargin at screen %g; set rmargin at screen %g\n"
        "set bmargin at screen %g; set tmargin at screen %g\n"
        "set label 1 %s at graph 0.03,0.95 font ',12' front\n",
        (is_right ? 500.0 : 90.0) / width(), (is_right ? 900.0 : 465.0) / width(),
        is_upper ? 0.535 : 0.075, is_upper ? 0.93 : 0.475, PlotText(name));
  }

  std::string Plot(const Levels& levels, const std::string& series) const {
    std::vector<std::string> elements = levels.elements();
    elements.push_back(series);
    return absl::StrCat(levels.labels(), "plot ", absl::StrJoin(elements, ", \\\n  "),
                        "\nunset label\n");
  }

  std::string Parameters() const {
    Levels levels(units_, batch_);
    levels.Title("units for each sample of a step");
    for (int k = -6; k <= 8; ++k)
      levels.Add({std::pow(2.0, -k),
                  k < 0 ? absl::StrCat("1/", std::pow(2.0, -k)) : absl::StrCat(std::pow(2.0, k))});
    return absl::StrCat(Panel("a) parameters", false, true), RangeText("x", units_),
                        RangeText("y", batch_), Tics("x", RoundValues(units_, 2, {1})),
                        Tics("y", RoundValues(batch_, 2, {1})),
                        "set format x ''\nset ylabel 'global batch size'\n",
                        Plot(levels, Series("1:2", "points", false)));
  }

  std::string EpochScaling() const {
    Levels levels(epochs_, batch_);
    levels.Title("optimizer steps to solution");
    const double train_samples = points_.front().train_samples;
    for (int k = -6; k <= 16; ++k) {
      const double thousands = std::pow(2.0, k);
      levels.Add({train_samples / (thousands * 1000), absl::StrCat(thousands, "k")});
    }
    return absl::StrCat(Panel("b) epoch scaling", true, true), RangeText("x", epochs_),
                        Tics("x", RoundValues(epochs_, 10, {1, 1.5, 2, 3, 5, 7})),
                        "set format y ''\nunset ylabel\n",
                        Plot(levels, Series("3:2:4", "xerrorbars", false)));
  }

  std::string ThroughputScaling() const {
    Levels levels(units_, samples_);
    for (int k = -8; k <= 10; ++k)
      levels.Add({std::pow(10.0, k / 2.0), ""});
    return absl::StrCat(
        Panel("c) throughput scaling", false, false),
        "set label 2 'bars: from training to evaluation' at graph 0.03,0.88 tc rgb '#555555' "
        "font ',8' front\n",
        RangeText("x", units_), RangeText("y", samples_), Tics("x", RoundValues(units_, 2, {1})),
        Tics("y", RoundValues(samples_, 10, {1, 3})),
        "set format x '%g'\nset format y '%g'\nset xlabel 'accelerators or processors'\n"
        "set ylabel 'samples per second'\n",
        Plot(levels, Series("1:7:5:6", "yerrorbars", false)));
  }

  std::string ComputeTime() const {
    Levels levels(epochs_, per_h_);
    for (const double minutes : RoundValues({0.01, 1e6}, 10, {1, 2, 5}))
      levels.Add({60 / minutes, absl::StrFormat("%g min", minutes)});
    return absl::StrCat(
        Panel("d) compute time", true, false), RangeText("x", epochs_), RangeText("y", per_h_),
        RangeText("y2", per_h_), Tics("x", RoundValues(epochs_, 10, {1, 1.5, 2, 3, 5, 7})),
        Tics("y2", RoundValues(per_h_, 10, {1, 2, 5})), "unset ytics\nset grid x y2\n",
        "unset ylabel\nset y2label 'epochs per hour'\nset xlabel 'epochs to solution'\n",
        "set key at screen 0.99,0.93 top right vertical samplen 0.5 spacing 1.3 font ',9'\n",
        Plot(levels, Series("3:8:4", "xerrorbars", true)));
  }

  std::vector<Point> points_;
  Range units_, batch_, epochs_, samples_, per_h_;
};

}  // namespace

absl::StatusOr<Figure> ScalingFigure(std::span<const Characteristics> entries) {
  for (const Characteristics& entry : entries)
    if (entry.entry.benchmark != entries.front().entry.benchmark)
      return absl::InvalidArgumentError(
          "epochs and samples of different benchmarks have no common axes: choose one with "
          "--benchmark");
  std::vector<Point> points = PointsOf(entries);
  if (points.empty())
    return absl::FailedPreconditionError(
        "no entry says its batch size, samples, number of units and epoch times: nothing to draw");
  const ScalingPlot plot(std::move(points));
  return Figure{.commands = plot.Commands(), .width = plot.width(), .height = 900};
}

}  // namespace assay::cli
