#include "common/analysis/run_times.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/mllog.h"

namespace assay::analysis {
namespace {

constexpr double kMsPerSecond = 1000;

struct Interval {
  double start_ms = 0;
  double stop_ms = 0;
  double length_ms() const { return stop_ms - start_ms; }
};

// The intervals of one kind, as their starts and stops come by.
struct Starts {
  std::vector<double> starts_ms, stops_ms;

  std::vector<Interval> Closed() const {
    std::vector<Interval> intervals;
    for (size_t i = 0; i < std::min(starts_ms.size(), stops_ms.size()); ++i)
      intervals.push_back({starts_ms[i], stops_ms[i]});
    return intervals;
  }
  // The one that `end_ms` cuts; none if all are closed.
  std::optional<Interval> Open(std::optional<double> end_ms) const {
    if (starts_ms.size() != stops_ms.size() + 1 || !end_ms || *end_ms < starts_ms.back())
      return std::nullopt;
    return Interval{starts_ms.back(), *end_ms};
  }
};

double TotalMs(const std::vector<Interval>& intervals) {
  double total = 0;
  for (const Interval& interval : intervals)
    total += interval.length_ms();
  return total;
}

// How much of a set of intervals lies before a moment. Intervals that overlap count once.
class Coverage {
 public:
  explicit Coverage(std::vector<Interval> intervals) {
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.start_ms < b.start_ms; });
    for (const Interval& interval : intervals) {
      if (!merged_.empty() && interval.start_ms <= merged_.back().stop_ms) {
        merged_.back().stop_ms = std::max(merged_.back().stop_ms, interval.stop_ms);
      } else if (interval.length_ms() > 0) {
        merged_.push_back(interval);
      }
    }
    double before = 0;
    for (const Interval& interval : merged_) {
      before_ms_.push_back(before);
      before += interval.length_ms();
    }
  }

  double OverlapMs(const std::vector<Interval>& others) const {
    double overlap = 0;
    for (const Interval& other : others)
      if (other.length_ms() > 0) overlap += Before(other.stop_ms) - Before(other.start_ms);
    return overlap;
  }

 private:
  double Before(double moment_ms) const {
    const auto next = std::upper_bound(
        merged_.begin(), merged_.end(), moment_ms,
        [](double moment, const Interval& interval) { return moment < interval.start_ms; });
    if (next == merged_.begin()) return 0;
    const auto index = static_cast<size_t>(next - merged_.begin()) - 1;
    const Interval& last = merged_[index];
    return before_ms_[index] + std::min(moment_ms, last.stop_ms) - last.start_ms;
  }

  std::vector<Interval> merged_;   // disjoint, ascending
  std::vector<double> before_ms_;  // total length of those before each
};

struct Timeline {
  Starts epochs, evaluations;
};

Timeline ReadTimeline(absl::string_view log) {
  Timeline timeline;
  bool has_started = false;
  MllogLines lines(log);
  std::string storage;
  for (absl::string_view text; lines.Next(&text);) {
    const MllogLine line = ReadMllogLine(text);
    if (line.outcome == MllogOutcome::kCrash) break;
    if (line.outcome != MllogOutcome::kRecord || !std::isfinite(line.time_ms)) continue;
    const absl::string_view key = MllogKey(line, &storage);
    if (key == "run_start") has_started = true;
    if (key == "run_stop" && has_started) break;
    if (key == "epoch_start") timeline.epochs.starts_ms.push_back(line.time_ms);
    if (key == "epoch_stop") timeline.epochs.stops_ms.push_back(line.time_ms);
    if (key == "eval_start") timeline.evaluations.starts_ms.push_back(line.time_ms);
    if (key == "eval_stop") timeline.evaluations.stops_ms.push_back(line.time_ms);
  }
  return timeline;
}

std::optional<double> Number(const std::optional<JsonValue>& value) {
  const std::optional<double> number = value ? value->ToDouble() : std::nullopt;
  return number && std::isfinite(*number) && *number > 0 ? number : std::nullopt;
}

std::optional<double> Seconds(std::optional<double> ms) {
  if (!ms || !std::isfinite(*ms)) return std::nullopt;
  return *ms / kMsPerSecond;
}

std::optional<double> Rate(int64_t passes, std::optional<double> samples, double seconds) {
  if (!samples || passes < 1 || !(seconds > 0)) return std::nullopt;
  return static_cast<double>(passes) * *samples / seconds;
}

}  // namespace

std::optional<double> RunTimes::train_samples_per_s() const {
  return Rate(closed_epochs, train_samples, training_s());
}

std::optional<double> RunTimes::eval_samples_per_s() const {
  return Rate(evaluations, eval_samples, evaluation_s);
}

RunTimes ReadRunTimes(absl::string_view log, const rules::Facts& facts) {
  const Timeline timeline = ReadTimeline(log);
  RunTimes times = {.run_s = Seconds(facts.run_ms()),
                    .staging_s = Seconds(facts.staging_ms),
                    .batch_size = Number(facts.global_batch_size),
                    .train_samples = Number(facts.train_samples),
                    .eval_samples = Number(facts.eval_samples),
                    .quality = facts.best_quality,
                    .reached_target = facts.reached_target};
  if (facts.staging_start_ms && facts.run_start_ms)
    times.is_staging_timed = *facts.staging_start_ms >= *facts.run_start_ms;
  const std::vector<Interval> epochs = timeline.epochs.Closed();
  std::vector<Interval> evaluations = timeline.evaluations.Closed();
  times.epochs = static_cast<int64_t>(timeline.epochs.starts_ms.size());
  times.closed_epochs = static_cast<int64_t>(epochs.size());
  times.epoch_s = TotalMs(epochs) / kMsPerSecond;
  times.evaluations = static_cast<int64_t>(evaluations.size());
  times.evaluation_s = TotalMs(evaluations) / kMsPerSecond;
  times.evaluation_in_epoch_s = Coverage(epochs).OverlapMs(evaluations) / kMsPerSecond;
  if (const auto open = timeline.epochs.Open(facts.run_stop_ms); open.has_value()) {
    times.open_epoch_s = open->length_ms() / kMsPerSecond;
    times.evaluation_in_open_s = Coverage({*open}).OverlapMs(evaluations) / kMsPerSecond;
  }
  return times;
}

}  // namespace assay::analysis
