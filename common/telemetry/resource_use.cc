#include "common/telemetry/resource_use.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

#include "common/telemetry/bytes.h"
#include "common/telemetry/summary.h"

namespace assay::telemetry {
namespace {

constexpr absl::string_view kProcessorTime[] = {"cpu.user",    "cpu.nice",   "cpu.system",
                                                "cpu.idle",    "cpu.iowait", "cpu.irq",
                                                "cpu.softirq", "cpu.steal"};
constexpr absl::string_view kRunTime[] = {"run.cpu"};
constexpr absl::string_view kRunMemory[] = {"run.memory"};
constexpr absl::string_view kStorage[] = {"disk.", "server."};
constexpr absl::string_view kNetwork[] = {"network.", "infiniband."};

// Columns that make a resource together.
struct Kind {
  const char* resource;
  const char* unit;
  std::span<const absl::string_view> prefixes;
  absl::string_view suffix;
  double scale;  // to the unit
};
const Kind kKinds[] = {{"processors", "cores", kRunTime, "", 1e-3},
                       {"memory held", "GB", kRunMemory, "", 1e-9},
                       {"storage read", "MB/s", kStorage, ".read", 1e-6},
                       {"network received", "MB/s", kNetwork, ".received", 1e-6}};

std::vector<size_t> ColumnsOf(const Series& series, const Kind& kind) {
  std::vector<size_t> columns;
  for (size_t c = 0; c < series.header.columns.size(); ++c) {
    const std::string& name = series.header.columns[c].name;
    const bool is_one =
        std::any_of(kind.prefixes.begin(), kind.prefixes.end(),
                    [&name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
    if (is_one && absl::EndsWith(name, kind.suffix)) columns.push_back(c);
  }
  return columns;
}

// What of `intervals` is in none of `others`.
std::vector<Interval> Without(const std::vector<Interval>& intervals,
                              const std::vector<Interval>& others) {
  std::vector<Interval> rest;
  for (const Interval& interval : intervals) {
    int64_t begin_ms = interval.begin_ms;
    for (const Interval& other : others) {
      if (other.end_ms <= begin_ms || other.begin_ms >= interval.end_ms) continue;
      if (other.begin_ms > begin_ms) rest.push_back({begin_ms, other.begin_ms});
      begin_ms = std::max(begin_ms, other.end_ms);
    }
    if (begin_ms < interval.end_ms) rest.push_back({begin_ms, interval.end_ms});
  }
  return rest;
}

// Rates of counters and values of gauges between neighbouring samples.
class Course {
 public:
  Course(const Series* series, const Kind& kind)
      : series_(series),
        growth_(*series, kind.prefixes, kind.suffix),
        columns_(ColumnsOf(*series, kind)),
        scale_(kind.scale) {}

  bool is_counter() const { return series_->header.columns[columns_[0]].is_counter; }
  bool is_there() const { return !columns_.empty(); }

  // Adds an interval to the use; `sum` is of value times seconds.
  void Add(int64_t begin_ns, int64_t end_ns, double* sum, PhaseUse* use) const {
    const double seconds = static_cast<double>(end_ns - begin_ns) * 1e-9;
    const std::optional<double> mean =
        is_counter() ? growth_.Between(begin_ns, end_ns) : Mean(begin_ns, end_ns);
    if (!mean.has_value() || seconds <= 0) return;
    const double total = scale_ * (is_counter() ? *mean : *mean * seconds);
    *sum += total;
    use->seconds += seconds;
    use->highest = std::max({use->highest, total / seconds, Highest(begin_ns, end_ns)});
  }

  std::vector<std::optional<double>> Parts(int64_t begin_ns, int64_t end_ns,
                                           size_t part_count) const {
    std::vector<std::optional<double>> sum(part_count);
    for (const size_t column : columns_) {
      const std::vector<std::optional<double>> one =
          CourseOf(*series_, column, begin_ns, end_ns, part_count);
      for (size_t part = 0; part < part_count; ++part)
        if (one[part].has_value()) sum[part] = sum[part].value_or(0) + scale_ * *one[part];
    }
    return sum;
  }

 private:
  std::optional<double> Mean(int64_t begin_ns, int64_t end_ns) const {
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < series_->at_ns.size(); ++i) {
      const int64_t value = series_->columns[columns_[0]][i];
      if (series_->at_ns[i] < begin_ns || series_->at_ns[i] > end_ns || value == kMissing) continue;
      sum += static_cast<double>(value);
      ++count;
    }
    return count == 0 ? std::nullopt : std::optional(sum / count);
  }

  double Highest(int64_t begin_ns, int64_t end_ns) const {
    double highest = 0;
    for (size_t i = 0; i < series_->at_ns.size(); ++i) {
      if (series_->at_ns[i] < begin_ns || series_->at_ns[i] > end_ns) continue;
      if (!is_counter()) {
        const int64_t value = series_->columns[columns_[0]][i];
        if (value != kMissing) highest = std::max(highest, scale_ * static_cast<double>(value));
        continue;
      }
      if (i == 0 || series_->at_ns[i - 1] < begin_ns) continue;
      const std::optional<double> grown = growth_.Between(series_->at_ns[i - 1], series_->at_ns[i]);
      const double seconds = static_cast<double>(series_->at_ns[i] - series_->at_ns[i - 1]) * 1e-9;
      if (grown.has_value() && seconds > 0) highest = std::max(highest, scale_ * *grown / seconds);
    }
    return highest;
  }

  const Series* const series_;
  const Growth growth_;
  const std::vector<size_t> columns_;
  const double scale_;
};

}  // namespace

std::vector<ResourceUse> UseOf(const Series& series, const RunPhases& phases,
                               size_t part_count_max) {
  std::vector<ResourceUse> uses;
  if (!phases.run_start_ms.has_value() || !phases.run_stop_ms.has_value()) return uses;
  const std::pair<const char*, std::vector<Interval>> parts[] = {
      {"init", phases.init},
      {"staging", phases.staging},
      {"training", Without(phases.epochs, phases.evaluations)},
      {"evaluation", phases.evaluations}};
  for (const Kind& kind : kKinds) {
    const Course course(&series, kind);
    if (!course.is_there()) continue;
    ResourceUse use{.resource = kind.resource, .unit = kind.unit};
    for (const auto& [phase, intervals] : parts) {
      PhaseUse of_phase{.phase = phase};
      double sum = 0;
      for (const Interval& interval : intervals)
        course.Add(NodeNsAt(series.header, interval.begin_ms),
                   NodeNsAt(series.header, interval.end_ms), &sum, &of_phase);
      if (of_phase.seconds <= 0) continue;
      of_phase.mean = sum / of_phase.seconds;
      use.phases.push_back(of_phase);
    }
    const int64_t start_ns = NodeNsAt(series.header, *phases.run_start_ms);
    const int64_t stop_ns = NodeNsAt(series.header, *phases.run_stop_ms);
    use.course = course.Parts(start_ns, stop_ns, PartCountOf(start_ns, stop_ns, part_count_max));
    uses.push_back(std::move(use));
  }
  return uses;
}

std::optional<double> ProcessorsOf(const Series& series) {
  if (series.at_ns.size() < 2) return std::nullopt;
  const Growth all(series, kProcessorTime, "");
  const std::optional<double> time_ms = all.Between(series.at_ns.front(), series.at_ns.back());
  const double seconds = static_cast<double>(series.at_ns.back() - series.at_ns.front()) * 1e-9;
  if (!time_ms.has_value() || seconds <= 0) return std::nullopt;
  return *time_ms / 1000 / seconds;
}

}  // namespace assay::telemetry
