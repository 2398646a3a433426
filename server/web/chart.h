// Charts as SVG, drawn by the style sheet's classes: they follow light, dark and print, and hold no
// style attributes, which the policy of the site forbids. Lines differ by marker and dashes besides
// their colour, parts of bars by pattern. A chart has a title and a description; whoever draws one
// puts a table with the same numbers below it. Pure functions.

#ifndef SERVER_WEB_CHART_H_
#define SERVER_WEB_CHART_H_

#include <optional>
#include <string>
#include <vector>

#include "server/web/html.h"

namespace assay::web {

struct ChartPoint {
  double x = 0;
  double y = 0;
};

struct ChartLine {
  std::string name;
  std::string path;  // of the site, what the legend links to; empty: nothing
  std::vector<ChartPoint> points;
  bool is_scatter = false;  // markers alone
};

struct BandPoint {
  double x = 0;
  double low = 0;
  double high = 0;
};

struct ChartAxis {
  std::string label;  // with its unit
  bool is_log = false;
  bool starts_at_zero = false;
};

struct LineChart {
  std::string id;  // unique on the page
  std::string title;
  std::string description;
  ChartAxis x, y;
  std::vector<ChartLine> lines;
  std::optional<double> target;  // a level
  std::string target_name = "target";
  std::vector<ChartPoint> ideal;  // a dotted line
  std::string ideal_name = "ideal";
  std::vector<BandPoint> band;  // ascending by x
  std::string band_name;
};

// The chart with its legend. Points that are not finite, or not positive on a logarithmic axis, are
// left out; a chart without points says so.
Html DrawLines(const LineChart& chart);

struct Bar {
  std::string name;
  std::string path;            // as of a line
  std::vector<double> before;  // left of zero, the outermost first, as BarChart::before_names
  std::vector<double> values;  // right of it, as BarChart::names
};

struct BarChart {
  std::string id;
  std::string title;
  std::string description;
  std::string unit;  // of the axis
  std::vector<std::string> before_names, names;
  std::vector<Bar> bars;
};

// Horizontal stacked bars, one below the other, with their legend.
Html DrawBars(const BarChart& chart);

// Round numbers that cover `low` to `high`, four to eight of them; powers of ten and their doubles
// and fivefolds on a logarithmic axis.
std::vector<double> TicksOf(double low, double high, bool is_log);

// "0.25", "1,500", "20 k", "3.5 M".
std::string TickText(double value);

}  // namespace assay::web

#endif  // SERVER_WEB_CHART_H_
