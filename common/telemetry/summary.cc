#include "common/telemetry/summary.h"

#include <algorithm>
#include <limits>

#include "absl/strings/string_view.h"

#include "common/telemetry/bytes.h"

namespace assay::telemetry {
namespace {

constexpr absl::string_view kBusy[] = {"cpu.user", "cpu.nice", "cpu.system", "cpu.irq",
                                       "cpu.softirq"};
constexpr absl::string_view kNotBusy[] = {"cpu.idle", "cpu.iowait", "cpu.steal"};
constexpr absl::string_view kRun[] = {"run.cpu"};

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

Figure FigureOf(size_t place, const Column& column, const std::vector<Point>& points) {
  Figure figure{
      .column = place, .name = column.name, .unit = column.unit, .is_counter = column.is_counter};
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
    if (points.size() >= 2) figures.push_back(FigureOf(c, series.header.columns[c], points));
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
  for (const absl::string_view name : kBusy)
    busy_ms += total(name).value_or(0);
  all_ms = busy_ms;
  for (const absl::string_view name : kNotBusy)
    all_ms += total(name).value_or(0);
  Quiet quiet;
  if (all_ms <= 0) return quiet;
  if (const std::optional<double> stolen_ms = total("cpu.steal"); stolen_ms.has_value())
    quiet.stolen = *stolen_ms / all_ms;
  if (const std::optional<double> run_ms = total("run.cpu"); run_ms.has_value())
    quiet.others = std::max(0.0, busy_ms - *run_ms) / all_ms;
  return quiet;
}

std::optional<Minute> WorstMinute(const Series& series, int64_t begin_ns, int64_t end_ns) {
  constexpr int64_t kMinuteNs = 60'000'000'000;
  const Growth busy(series, kBusy, "");
  const Growth not_busy(series, kNotBusy, "");
  const Growth run(series, kRun, "");
  std::optional<Minute> worst;
  const auto look = [&](int64_t from_ns, int64_t to_ns) {
    const std::optional<double> busy_ms = busy.Between(from_ns, to_ns);
    const std::optional<double> rest_ms = not_busy.Between(from_ns, to_ns);
    const std::optional<double> run_ms = run.Between(from_ns, to_ns);
    if (!busy_ms.has_value() || !rest_ms.has_value() || !run_ms.has_value()) return;
    if (*busy_ms + *rest_ms <= 0) return;
    const double others = std::max(0.0, *busy_ms - *run_ms) / (*busy_ms + *rest_ms);
    if (!worst.has_value() || others > worst->others) worst = Minute{from_ns, others};
  };
  if (end_ns - begin_ns <= kMinuteNs) {
    look(begin_ns, end_ns);
    return worst;
  }
  look(begin_ns, begin_ns + kMinuteNs);
  for (const int64_t at_ns : series.at_ns)
    if (at_ns > begin_ns && at_ns <= end_ns - kMinuteNs) look(at_ns, at_ns + kMinuteNs);
  return worst;
}

size_t PartCountOf(int64_t begin_ns, int64_t end_ns, size_t part_count_max) {
  constexpr double kPartNs = 1.1e9;  // a sample a second, and some that come late
  const double parts = (static_cast<double>(end_ns) - static_cast<double>(begin_ns)) / kPartNs;
  return static_cast<size_t>(std::clamp(parts, 1.0, static_cast<double>(part_count_max)));
}

std::vector<std::optional<double>> CourseOf(const Series& series, size_t column, int64_t begin_ns,
                                            int64_t end_ns, size_t part_count) {
  std::vector<std::optional<double>> course(part_count);
  std::vector<int> counts(part_count);
  if (end_ns <= begin_ns) return course;
  const std::vector<Point> points = PointsOf(series, column, begin_ns, end_ns);
  const bool is_counter = series.header.columns[column].is_counter;
  const double first_s = static_cast<double>(begin_ns - series.at_ns[0]) * 1e-9;
  const double part_s =
      static_cast<double>(end_ns - begin_ns) * 1e-9 / static_cast<double>(part_count);
  for (size_t i = is_counter ? 1 : 0; i < points.size(); ++i) {
    double value = points[i].value;
    if (is_counter) {
      const double passed_s = points[i].at_s - points[i - 1].at_s;
      if (passed_s <= 0) continue;
      value = std::max(0.0, value - points[i - 1].value) / passed_s;
    }
    const auto part = std::min(
        part_count - 1, static_cast<size_t>(std::max(0.0, (points[i].at_s - first_s) / part_s)));
    course[part] = course[part].value_or(0) + value;
    ++counts[part];
  }
  for (size_t part = 0; part < part_count; ++part)
    if (counts[part] > 1) *course[part] /= counts[part];
  return course;
}

}  // namespace assay::telemetry
