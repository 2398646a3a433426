#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/printable.h"
#include "server/web/chart.h"
#include "server/web/chart_scale.h"

namespace assay::web {
namespace {

// Width of the names at the left: runs' ids, or longer names.
constexpr double kShortNames = 120;
constexpr double kLongNames = 260;
constexpr double kCharacter = 7.5;  // about so wide
constexpr double kEnd = 740;
constexpr double kRow = 24;
constexpr double kBar = 16;
constexpr double kHead = 8;
constexpr size_t kPatterns = 6;  // classes p0 to p5

// The pattern of a part: hatches in the part's colour, so that it is known without colour, too.
void DefinePatterns(const std::string& id, size_t count, Html* svg) {
  constexpr Markup kHatches[kPatterns] = {
      "<path d=\"M0 0H8V8H0z\"/>",                  // solid
      "<path d=\"M-2 2L2-2M0 8L8 0M6 10L10 6\"/>",  // rising
      "<path d=\"M-2 6L2 10M0 0L8 8M6-2L10 2\"/>",  // falling
      "<path d=\"M0 2H8M0 6H8\"/>",                 // level
      "<path d=\"M2 0V8M6 0V8\"/>",                 // upright
      "<path d=\"M1.5 2a1 1 0 1 0 2 0a1 1 0 1 0-2 0M5.5 6a1 1 0 1 0 2 0a1 1 0 1 0-2 0\"/>"};
  svg->Raw("<defs>");
  for (size_t i = 0; i < std::min(count, kPatterns); ++i) {
    svg->Raw("<pattern").Attribute("id", absl::StrCat(id, "-p", i));
    svg->Raw(" class=\"p").Text(absl::StrCat(i));
    svg->Raw("\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">");
    svg->Raw(kHatches[i]).Raw("</pattern>");
  }
  svg->Raw("</defs>");
}

void DrawPart(const std::string& id, size_t part, double from, double to, double top, Html* svg) {
  if (to - from < 0.05) return;
  svg->Raw("<rect class=\"part p").Text(absl::StrCat(part % kPatterns)).Raw("\"");
  svg->Attribute("fill", absl::StrCat("url(#", id, "-p", part % kPatterns, ")"));
  svg->Raw(" x=\"").Coordinate(from).Raw("\" y=\"").Coordinate(top);
  svg->Raw("\" width=\"").Coordinate(to - from).Raw("\" height=\"").Coordinate(kBar).Raw("\"/>");
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

size_t CodePoints(double width) {
  return static_cast<size_t>((width - 8) / kCharacter);
}

double NamesWidth(const BarChart& chart) {
  const bool is_short = std::ranges::all_of(chart.bars, [](const Bar& bar) {
    return Printable(bar.name).size() <= CodePoints(kShortNames);
  });
  return is_short ? kShortNames : kLongNames;
}

void DrawBar(const BarChart& chart, const Bar& bar, double names, double top,
             const ChartScale& scale, Html* svg) {
  svg->Raw("<text class=\"end\" x=\"").Coordinate(names - 8).Raw("\" y=\"");
  svg->Coordinate(top + kBar - 3)
      .Raw("\">")
      .Text(Shortened(Printable(bar.name), CodePoints(names)))
      .Raw("</text>");
  double at = -Sum(bar.before);
  size_t part = 0;
  for (const std::vector<double>* values : {&bar.before, &bar.values})
    for (const double value : *values) {
      DrawPart(chart.id, part++, scale.At(at), scale.At(at + value), top, svg);
      at += value;
    }
}

void AddBarLegend(const BarChart& chart, Html* html) {
  html->Raw("<ul class=\"legend\">");
  size_t part = 0;
  for (const std::vector<std::string>* names : {&chart.before_names, &chart.names})
    for (const std::string& name : *names) {
      html->Raw("<li><svg viewBox=\"0 0 28 12\" aria-hidden=\"true\">");
      html->Raw("<rect class=\"part p").Text(absl::StrCat(part % kPatterns)).Raw("\"");
      html->Attribute("fill", absl::StrCat("url(#", chart.id, "-p", part++ % kPatterns, ")"));
      html->Raw(" x=\"0.5\" y=\"0.5\" width=\"27\" height=\"11\"/></svg>").Text(name);
      html->Raw("</li>");
    }
  html->Raw("</ul>");
}

void DrawBarAxis(const BarChart& chart, double names, const ChartScale& scale, double bottom,
                 Html* svg) {
  for (const double tick : scale.ticks()) {
    svg->Raw("<path class=\"grid\" d=\"M").Coordinate(scale.At(tick)).Raw(" ");
    svg->Coordinate(kHead - 4).Raw("V").Coordinate(bottom).Raw("\"/><text class=\"mid\" x=\"");
    svg->Coordinate(scale.At(tick)).Raw("\" y=\"").Coordinate(bottom + 16).Raw("\">");
    svg->Text(TickText(tick)).Raw("</text>");
  }
  svg->Raw("<text class=\"mid label\" x=\"").Coordinate((names + kEnd) / 2).Raw("\" y=\"");
  svg->Coordinate(bottom + 34).Raw("\">").Text(chart.unit).Raw("</text>");
}

}  // namespace

Html DrawBars(const BarChart& chart) {
  Html html;
  const double names = NamesWidth(chart);
  ChartScale scale(false, names, kEnd);
  scale.Add(0);
  for (const Bar& bar : chart.bars) {
    scale.Add(-Sum(bar.before));
    scale.Add(Sum(bar.values));
  }
  if (chart.bars.empty()) return html.Raw("<p class=\"none\">Nothing to draw.</p>");
  scale.Settle();
  const double bottom = kHead + kRow * static_cast<double>(chart.bars.size());
  html.Raw("<figure><div class=\"draw\" tabindex=\"0\" role=\"region\"");
  html.Attribute("aria-label", absl::StrCat("Chart: ", chart.title));
  html.Raw("><svg class=\"chart\" viewBox=\"0 0 760 ").Coordinate(bottom + 40);
  html.Raw("\" role=\"img\" aria-labelledby=\"");
  html.Text(absl::StrCat(chart.id, "-t ", chart.id, "-d")).Raw("\"><title");
  html.Attribute("id", chart.id + "-t").Raw(">").Text(chart.title).Raw("</title><desc");
  html.Attribute("id", chart.id + "-d").Raw(">").Text(chart.description).Raw("</desc>");
  DefinePatterns(chart.id, chart.before_names.size() + chart.names.size(), &html);
  DrawBarAxis(chart, names, scale, bottom, &html);
  double top = kHead;
  for (const Bar& bar : chart.bars) {
    DrawBar(chart, bar, names, top, scale, &html);
    top += kRow;
  }
  html.Raw("<path class=\"axis\" d=\"M").Coordinate(scale.At(0)).Raw(" ").Coordinate(kHead - 4);
  html.Raw("V").Coordinate(bottom).Raw("\"/></svg></div><figcaption>");
  AddBarLegend(chart, &html);
  return html.Raw("</figcaption></figure>");
}

}  // namespace assay::web
