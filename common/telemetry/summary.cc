#include "common/telemetry/summary.h"

#include <algorithm>
#include <limits>

#include "absl/strings/string_view.h"

namespace assay::telemetry {
namespace {

struct Point {
  double at_s = 0;
  double value = 0;
};

std::vector<Point> PointsOf(const Series& series, size_t column, int64_t begin_ns, int64_t end_ns) {
  std::vector<Point> points;
  for (size_t i = 0; i < series.at_ns.size(); ++i) {
    const int64_t value = series.columns[column][i];
    if (value == kMissing || series.at_ns[i] < begin_ns || series.at_ns[i] > end_ns) continue;
    points.push_back({static_cast<double>(series.at_ns[i] - series.at_ns[0]) * 1e-9,
                      static_cast<double>(value)});
  }
  return points;
}

Figure FigureOf(const Column& column, const std::vector<Point>& points) {
  Figure figure{.name = column.name, .unit = column.unit, .is_counter = column.is_counter};
  if (!column.is_counter) {
    figure.highest = points.front().value;
    for (const Point& point : points) {
      figure.mean += point.value / static_cast<double>(points.size());
      figure.highest = std::max(figure.highest, point.value);
    }
    return figure;
  }
  double total = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    const double passed_s = points[i].at_s - points[i - 1].at_s;
    // One that has begun anew counts from there.
    const double grown = std::max(0.0, points[i].value - points[i - 1].value);
    total += grown;
    if (passed_s > 0) figure.highest = std::max(figure.highest, grown / passed_s);
  }
  const double time_s = points.back().at_s - points.front().at_s;
  figure.total = total;
  figure.mean = time_s > 0 ? total / time_s : 0;
  return figure;
}

}  // namespace

std::vector<Figure> Summarize(const Series& series, int64_t begin_ns, int64_t end_ns) {
  const auto count = std::count_if(series.at_ns.begin(), series.at_ns.end(), [&](int64_t at_ns) {
    return at_ns >= begin_ns && at_ns <= end_ns;
  });
  if (count < 2) {
    begin_ns = std::numeric_limits<int64_t>::min();
    end_ns = std::numeric_limits<int64_t>::max();
  }
  std::vector<Figure> figures;
  for (size_t c = 0; c < series.columns.size(); ++c) {
    const std::vector<Point> points = PointsOf(series, c, begin_ns, end_ns);
    if (points.size() >= 2) figures.push_back(FigureOf(series.header.columns[c], points));
  }
  return figures;
}

Quiet QuietOf(const std::vector<Figure>& figures) {
  const auto total = [&figures](absl::string_view name) -> std::optional<double> {
    const auto found = std::find_if(figures.begin(), figures.end(),
                                    [name](const Figure& figure) { return figure.name == name; });
    return found == figures.end() ? std::nullopt : found->total;
  };
  double busy_ms = 0;
  double all_ms = 0;
  for (const char* name : {"cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq"})
    busy_ms += total(name).value_or(0);
  all_ms = busy_ms;
  for (const char* name : {"cpu.idle", "cpu.iowait", "cpu.steal"})
    all_ms += total(name).value_or(0);
  Quiet quiet;
  if (all_ms <= 0) return quiet;
  if (const std::optional<double> stolen_ms = total("cpu.steal"); stolen_ms.has_value())
    quiet.stolen = *stolen_ms / all_ms;
  if (const std::optional<double> run_ms = total("run.cpu"); run_ms.has_value())
    quiet.others = std::max(0.0, busy_ms - *run_ms) / all_ms;
  return quiet;
}

}  // namespace assay::telemetry
