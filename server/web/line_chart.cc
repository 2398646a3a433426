#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

#include "server/web/chart.h"
#include "server/web/chart_scale.h"

namespace assay::web {
namespace {

// In units of the view box; the style sheet gives the size on the screen.
constexpr double kRight = 744;
constexpr double kLeft = 64;
constexpr double kTop = 14;
constexpr double kBottom = 296;
constexpr size_t kColors = 8;  // classes c0 to c7
constexpr size_t kDashes = 4;  // classes d0 to d3
constexpr size_t kMarkers = 6;
// More would hide the line: of longer ones every so many has a marker.
constexpr size_t kMarkersPerLine = 40;

// A path of the marker around the origin; each has an area of some 40 square units.
void DrawMarker(size_t kind, double x, double y, Html* svg) {
  svg->Raw("M").Coordinate(x).Raw(" ").Coordinate(y);
  switch (kind % kMarkers) {
    case 0:
      svg->Raw("m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z");
      break;
    case 1:
      svg->Raw("m-3.2-3.2h6.4v6.4h-6.4z");
      break;
    case 2:
      svg->Raw("m0-4.4l4.2 7.4h-8.4z");
      break;
    case 3:
      svg->Raw("m0-4.6l4.6 4.6l-4.6 4.6l-4.6-4.6z");
      break;
    case 4:
      svg->Raw("m0 4.4l-4.2-7.4h8.4z");
      break;
    default:
      svg->Raw("m-4-1.3h2.7v-2.7h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7z");
  }
}

void StyleClass(Markup kind, size_t number, Html* svg) {
  svg->Raw(" class=\"").Raw(kind).Raw(" c").Text(absl::StrCat(number % kColors));
  svg->Raw(" d").Text(absl::StrCat(number / kMarkers % kDashes)).Raw("\"");
}

struct Frame {
  ChartScale x, y;
};

Frame FrameOf(const LineChart& chart) {
  Frame frame{.x = ChartScale(chart.x.is_log, kLeft, kRight),
              .y = ChartScale(chart.y.is_log, kBottom, kTop)};
  const auto add = [&frame](double x, double y) {
    if (!frame.x.Takes(x) || !frame.y.Takes(y)) return;
    frame.x.Add(x);
    frame.y.Add(y);
  };
  for (const ChartLine& line : chart.lines)
    for (const ChartPoint& point : line.points)
      add(point.x, point.y);
  if (frame.x.has_values()) {
    for (const ChartPoint& point : chart.ideal)
      add(point.x, point.y);
    for (const BandPoint& point : chart.band) {
      add(point.x, point.low);
      add(point.x, point.high);
    }
    if (chart.target) frame.y.Add(*chart.target);
    if (chart.x.starts_at_zero) frame.x.Add(0);
    if (chart.y.starts_at_zero) frame.y.Add(0);
  }
  frame.x.Settle();
  frame.y.Settle();
  return frame;
}

void DrawAxes(const LineChart& chart, const Frame& frame, Html* svg) {
  for (const double tick : frame.y.ticks()) {
    const double y = frame.y.At(tick);
    svg->Raw("<path class=\"grid\" d=\"M").Coordinate(kLeft).Raw(" ").Coordinate(y);
    svg->Raw("H").Coordinate(kRight).Raw("\"/><text class=\"end\" x=\"").Coordinate(kLeft - 8);
    svg->Raw("\" y=\"").Coordinate(y + 4).Raw("\">").Text(TickText(tick)).Raw("</text>");
  }
  for (const double tick : frame.x.ticks()) {
    const double x = frame.x.At(tick);
    svg->Raw("<path class=\"grid\" d=\"M").Coordinate(x).Raw(" ").Coordinate(kTop);
    svg->Raw("V").Coordinate(kBottom).Raw("\"/><text class=\"mid\" x=\"").Coordinate(x);
    svg->Raw("\" y=\"").Coordinate(kBottom + 18).Raw("\">").Text(TickText(tick)).Raw("</text>");
  }
  svg->Raw("<path class=\"axis\" d=\"M").Coordinate(kLeft).Raw(" ").Coordinate(kTop);
  svg->Raw("V").Coordinate(kBottom).Raw("H").Coordinate(kRight).Raw("\"/>");
  svg->Raw("<text class=\"mid label\" x=\"").Coordinate((kLeft + kRight) / 2);
  svg->Raw("\" y=\"").Coordinate(kBottom + 38).Raw("\">").Text(chart.x.label).Raw("</text>");
  svg->Raw("<text class=\"mid label\" transform=\"translate(16 ");
  svg->Coordinate((kTop + kBottom) / 2).Raw(") rotate(-90)\">").Text(chart.y.label);
  svg->Raw("</text>");
}

void DrawPath(const std::vector<ChartPoint>& points, const Frame& frame, Html* svg) {
  bool is_first = true;
  for (const ChartPoint& point : points) {
    if (!frame.x.Takes(point.x) || !frame.y.Takes(point.y)) continue;
    if (is_first) {
      svg->Raw("M");
    } else {
      svg->Raw("L");
    }
    is_first = false;
    svg->Coordinate(frame.x.At(point.x)).Raw(" ").Coordinate(frame.y.At(point.y));
  }
}

void DrawBand(const LineChart& chart, const Frame& frame, Html* svg) {
  std::vector<ChartPoint> outline;
  for (const BandPoint& point : chart.band)
    outline.push_back({point.x, point.high});
  for (auto point = chart.band.rbegin(); point != chart.band.rend(); ++point)
    outline.push_back({point->x, point->low});
  if (outline.empty()) return;
  svg->Raw("<path class=\"band\" d=\"");
  DrawPath(outline, frame, svg);
  svg->Raw("z\"/>");
}

void DrawLine(const ChartLine& line, size_t number, const Frame& frame, Html* svg) {
  if (!line.is_scatter) {
    svg->Raw("<path");
    StyleClass("line", number, svg);
    svg->Raw(" d=\"");
    DrawPath(line.points, frame, svg);
    svg->Raw("\"/>");
  }
  svg->Raw("<path");
  StyleClass("mark", number, svg);
  svg->Raw(" d=\"");
  const size_t every =
      line.is_scatter ? 1 : std::max<size_t>(1, line.points.size() / kMarkersPerLine);
  for (size_t i = 0; i < line.points.size(); ++i) {
    const ChartPoint& point = line.points[i];
    const bool is_marked = i % every == 0 || i + 1 == line.points.size();
    if (is_marked && frame.x.Takes(point.x) && frame.y.Takes(point.y))
      DrawMarker(number, frame.x.At(point.x), frame.y.At(point.y), svg);
  }
  svg->Raw("\"/>");
}

void AddLegend(const LineChart& chart, Html* html) {
  html->Raw("<ul class=\"legend\">");
  size_t number = 0;
  for (const ChartLine& line : chart.lines) {
    html->Raw("<li><svg viewBox=\"0 0 28 12\" aria-hidden=\"true\">");
    if (!line.is_scatter) {
      html->Raw("<path");
      StyleClass("line", number, html);
      html->Raw(" d=\"M0 6H28\"/>");
    }
    html->Raw("<path");
    StyleClass("mark", number, html);
    html->Raw(" d=\"");
    DrawMarker(number, 14, 6, html);
    html->Raw("\"/></svg>").Link(line.path, line.name).Raw("</li>");
    ++number;
  }
  const auto add = [html](bool is_there, Markup swatch, const std::string& name) {
    if (!is_there) return;
    html->Raw("<li><svg viewBox=\"0 0 28 12\" aria-hidden=\"true\">").Raw(swatch);
    html->Raw("</svg>").Text(name).Raw("</li>");
  };
  add(chart.target.has_value(), "<path class=\"target\" d=\"M0 6H28\"/>", chart.target_name);
  add(!chart.ideal.empty(), "<path class=\"ideal\" d=\"M0 6H28\"/>", chart.ideal_name);
  add(!chart.band.empty(), "<path class=\"band\" d=\"M0 1H28V11H0z\"/>", chart.band_name);
  html->Raw("</ul>");
}

}  // namespace

Html DrawLines(const LineChart& chart) {
  const Frame frame = FrameOf(chart);
  Html html;
  if (!frame.x.has_values()) return html.Raw("<p class=\"none\">Nothing to draw.</p>");
  html.Raw("<figure><div class=\"draw\" tabindex=\"0\" role=\"region\"");
  html.Attribute("aria-label", absl::StrCat("Chart: ", chart.title));
  html.Raw("><svg class=\"chart\" viewBox=\"0 0 760 340\" role=\"img\" aria-labelledby=\"");
  html.Text(absl::StrCat(chart.id, "-t ", chart.id, "-d")).Raw("\"><title");
  html.Attribute("id", chart.id + "-t").Raw(">").Text(chart.title).Raw("</title><desc");
  html.Attribute("id", chart.id + "-d").Raw(">").Text(chart.description).Raw("</desc>");
  DrawAxes(chart, frame, &html);
  DrawBand(chart, frame, &html);
  if (!chart.ideal.empty()) {
    html.Raw("<path class=\"ideal\" d=\"");
    DrawPath(chart.ideal, frame, &html);
    html.Raw("\"/>");
  }
  if (chart.target) {
    html.Raw("<path class=\"target\" d=\"M").Coordinate(kLeft).Raw(" ");
    html.Coordinate(frame.y.At(*chart.target)).Raw("H").Coordinate(kRight).Raw("\"/>");
  }
  size_t number = 0;
  for (const ChartLine& line : chart.lines)
    DrawLine(line, number++, frame, &html);
  html.Raw("</svg></div><figcaption>");
  AddLegend(chart, &html);
  return html.Raw("</figcaption></figure>");
}

}  // namespace assay::web
