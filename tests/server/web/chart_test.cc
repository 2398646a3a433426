// That charts are drawn where their numbers are, and hold no text of others as markup. Coordinates
// are computed by hand from the frame of the view box: x from 64 to 744, y from 296 up to 14.

#include "server/web/chart.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::web {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

LineChart Chart() {
  return {.id = "c",
          .title = "Quality",
          .description = "By epoch.",
          .x = {.label = "epoch"},
          .y = {.label = "quality"},
          .lines = {{.name = "r-1", .path = "/runs/r-1", .points = {{0, 0}, {10, 100}}}}};
}

TEST(ChartTest, DrawsPointsWhereTheyAre) {
  const std::string svg = DrawLines(Chart()).Take();
  EXPECT_THAT(svg, HasSubstr("M64 296L744 14"));
  EXPECT_THAT(svg, HasSubstr("<title id=\"c-t\">Quality</title><desc id=\"c-d\">By epoch.</desc>"));
  EXPECT_THAT(svg, HasSubstr("<a href=\"/runs/r-1\">r-1</a>"));
}

TEST(ChartTest, UsesLogarithms) {
  LineChart chart = Chart();
  chart.x.is_log = chart.y.is_log = true;
  chart.lines[0].points = {{1, 1}, {100, 100}, {10000, 10000}, {0, 5}, {-1, 5}};
  // The second is half way, and what has no logarithm is left out.
  EXPECT_THAT(DrawLines(chart).Take(), HasSubstr("M64 296L404 155L744 14\""));
}

TEST(ChartTest, LeavesOutWhatIsNoNumber) {
  LineChart chart = Chart();
  chart.lines[0].points.push_back({5, std::numeric_limits<double>::quiet_NaN()});
  chart.lines[0].points.push_back({std::numeric_limits<double>::infinity(), 5});
  EXPECT_THAT(DrawLines(chart).Take(), HasSubstr("M64 296L744 14\""));
  chart.lines[0].points.clear();
  EXPECT_THAT(DrawLines(chart).Take(), HasSubstr("Nothing to draw."));
}

TEST(ChartTest, ShowsTargetBandAndIdeal) {
  LineChart chart = Chart();
  chart.target = 50;
  chart.target_name = "target <0.5>";
  chart.band = {{0, 20, 40}, {10, 20, 40}};
  chart.band_name = "99.9 %";
  chart.ideal = {{0, 100}, {10, 0}};
  const std::string svg = DrawLines(chart).Take();
  EXPECT_THAT(svg, HasSubstr("<path class=\"target\" d=\"M64 155H744\"/>"));
  EXPECT_THAT(svg, HasSubstr("target &lt;0.5&gt;"));
  EXPECT_THAT(svg,
              HasSubstr("<path class=\"band\" d=\"M64 183.2L744 183.2L744 239.6L64 239.6z\"/>"));
  EXPECT_THAT(svg, HasSubstr("<path class=\"ideal\" d=\"M64 14L744 296\"/>"));
}

TEST(ChartTest, TellsLinesApartWithoutColour) {
  LineChart chart = Chart();
  for (int i = 0; i < 7; ++i)
    chart.lines.push_back(chart.lines[0]);
  const std::string svg = DrawLines(chart).Take();
  EXPECT_THAT(svg, HasSubstr("class=\"line c0 d0\""));
  EXPECT_THAT(svg, HasSubstr("class=\"line c6 d1\"")) << "the first marker again, with dashes";
  EXPECT_THAT(svg, Not(HasSubstr("style=")));
}

TEST(ChartTest, EscapesNames) {
  LineChart chart = Chart();
  chart.title = chart.description = chart.x.label = chart.lines[0].name = "</svg><script>\u202e";
  const std::string svg = DrawLines(chart).Take();
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("\u202e")));
}

TEST(ChartTest, StacksBarsOnBothSidesOfZero) {
  const BarChart chart = {.id = "b",
                          .title = "Phases",
                          .description = "By run.",
                          .unit = "s",
                          .before_names = {"init"},
                          .names = {"training", "rest"},
                          .bars = {{.name = "r-7", .before = {100}, .values = {200, 100}}}};
  const std::string svg = DrawBars(chart).Take();
  // From -100 to 300 over 120 to 740: 1.55 each.
  EXPECT_THAT(svg, HasSubstr("fill=\"url(#b-p0)\" x=\"120\" y=\"8\" width=\"155\""));
  EXPECT_THAT(svg, HasSubstr("fill=\"url(#b-p1)\" x=\"275\" y=\"8\" width=\"310\""));
  EXPECT_THAT(svg, HasSubstr("fill=\"url(#b-p2)\" x=\"585\" y=\"8\" width=\"155\""));
  EXPECT_THAT(svg, HasSubstr(">r-7<"));
  EXPECT_THAT(svg, Not(HasSubstr("style=")));
}

TEST(ChartTest, LongNamesOfBarsGetMoreRoomAndAreCut) {
  const std::string name = absl::StrCat("deepcam, hpc-3.0.0, ", std::string(30, 'x'));
  const BarChart chart = {.id = "b",
                          .title = "Groups",
                          .unit = "min",
                          .names = {"count"},
                          .bars = {{.name = name, .values = {480}}}};
  const std::string svg = DrawBars(chart).Take();
  // 480 over 260 to 740, up to the round number above it.
  EXPECT_THAT(svg, HasSubstr("x=\"260\" y=\"8\""));
  EXPECT_THAT(svg, HasSubstr(absl::StrCat(">", name.substr(0, 33), "…<")));
}

TEST(TicksTest, AreRoundAndCover) {
  EXPECT_THAT(TicksOf(0, 100, false), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(TicksOf(1, 10000, true), ElementsAre(1, 10, 100, 1000, 10000));
  const std::vector<double> some = TicksOf(3, 47, true);
  EXPECT_LE(some.front(), 3);
  EXPECT_GE(some.back(), 47);
  for (const auto& [low, high] :
       {std::pair(0.123, 0.124), std::pair(-5.0, 3.3), std::pair(7e5, 9e9)}) {
    const std::vector<double> ticks = TicksOf(low, high, false);
    EXPECT_LE(ticks.front(), low + 1e-12);
    EXPECT_GE(ticks.back(), high - 1e-12);
    EXPECT_LE(ticks.size(), 9U);
  }
}

TEST(TicksTest, AreReadAtAGlance) {
  EXPECT_EQ(TickText(0), "0");
  EXPECT_EQ(TickText(0.25), "0.25");
  EXPECT_EQ(TickText(1500), "1,500");
  EXPECT_EQ(TickText(20000), "20 k");
  EXPECT_EQ(TickText(3.5e6), "3.5 M");
  EXPECT_EQ(TickText(-40), "-40");
}

}  // namespace
}  // namespace assay::web
