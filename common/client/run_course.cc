#include "common/client/run_course.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "common/json_reader.h"
#include "common/json_value.h"
#include "common/mllog.h"
#include "common/telemetry/run_phases.h"

namespace assay::client {
namespace {

using telemetry::Interval;

constexpr double kMsPerSecond = 1000;

std::optional<double> NumberIn(absl::string_view json) {
  const JsonResult parsed = ParseJson(json);
  if (parsed.error != JsonError::kNone) return std::nullopt;
  const std::optional<double> number = parsed.value.ToDouble();
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<double> EpochIn(absl::string_view metadata) {
  const JsonResult parsed = ParseJson(metadata);
  if (parsed.error != JsonError::kNone) return std::nullopt;
  const JsonValue* const epoch = parsed.value.Find("epoch_num");
  const std::optional<double> number = epoch == nullptr ? std::nullopt : epoch->ToDouble();
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// The parts of `intervals` between two moments, in order and disjoint.
std::vector<Interval> Within(std::vector<Interval> intervals, int64_t begin_ms, int64_t end_ms) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ms < b.begin_ms; });
  std::vector<Interval> merged;
  for (Interval interval : intervals) {
    interval.begin_ms = std::max(interval.begin_ms, begin_ms);
    interval.end_ms = std::min(interval.end_ms, end_ms);
    if (interval.begin_ms >= interval.end_ms) continue;
    if (!merged.empty() && interval.begin_ms <= merged.back().end_ms) {
      merged.back().end_ms = std::max(merged.back().end_ms, interval.end_ms);
    } else {
      merged.push_back(interval);
    }
  }
  return merged;
}

double SecondsOf(const std::vector<Interval>& disjoint) {
  int64_t total_ms = 0;
  for (const Interval& interval : disjoint)
    total_ms += interval.end_ms - interval.begin_ms;
  return static_cast<double>(total_ms) / kMsPerSecond;
}

double OverlapSeconds(const std::vector<Interval>& some, const std::vector<Interval>& others) {
  int64_t total_ms = 0;
  size_t next = 0;
  for (const Interval& interval : some) {
    while (next < others.size() && others[next].end_ms <= interval.begin_ms)
      ++next;
    for (size_t i = next; i < others.size() && others[i].begin_ms < interval.end_ms; ++i)
      total_ms += std::min(interval.end_ms, others[i].end_ms) -
                  std::max(interval.begin_ms, others[i].begin_ms);
  }
  return static_cast<double>(total_ms) / kMsPerSecond;
}

std::optional<PhaseTimes> TimesOf(const telemetry::RunPhases& phases) {
  if (!phases.run_start_ms || !phases.run_stop_ms) return std::nullopt;
  constexpr int64_t kEarliest = 0;
  const int64_t start_ms = *phases.run_start_ms;
  const int64_t stop_ms = *phases.run_stop_ms;
  const std::vector<Interval> epochs = Within(phases.epochs, start_ms, stop_ms);
  const std::vector<Interval> evaluations = Within(phases.evaluations, start_ms, stop_ms);
  PhaseTimes times;
  times.total = static_cast<double>(stop_ms - start_ms) / kMsPerSecond;
  times.init = SecondsOf(Within(phases.init, kEarliest, start_ms));
  times.untimed_staging = SecondsOf(Within(phases.staging, kEarliest, start_ms));
  times.staging = SecondsOf(Within(phases.staging, start_ms, stop_ms));
  times.evaluation = SecondsOf(evaluations);
  times.training = SecondsOf(epochs) - OverlapSeconds(epochs, evaluations);
  times.rest = std::max(0.0, times.total - times.staging - times.evaluation - times.training);
  return times;
}

}  // namespace

RunCourse ReadCourse(absl::string_view log, absl::string_view quality_key) {
  RunCourse course;
  const telemetry::RunPhases phases = telemetry::PhasesOf(log);
  course.phases = TimesOf(phases);
  const double start_ms = static_cast<double>(phases.run_start_ms.value_or(0));
  MllogLines lines(log);
  std::string storage;
  for (absl::string_view text; lines.Next(&text);) {
    if (text.find(quality_key) == absl::string_view::npos) continue;
    const MllogLine record = ReadMllogLine(text);
    if (record.outcome != MllogOutcome::kRecord || !std::isfinite(record.time_ms)) continue;
    if (MllogKey(record, &storage) != quality_key) continue;
    const std::optional<double> quality = NumberIn(record.value_json);
    if (!quality || course.points.size() >= kQualityPointsMax) continue;
    QualityPoint& point = course.points.emplace_back();
    point.seconds = phases.run_start_ms ? (record.time_ms - start_ms) / kMsPerSecond : 0;
    point.quality = *quality;
    point.line = lines.line_number();
    point.epoch = EpochIn(record.metadata_json);
    if (point.epoch && phases.train_samples)
      point.samples = *point.epoch * static_cast<double>(*phases.train_samples);
  }
  return course;
}

QualityReached ReachedBy(const RunCourse& course, double target, bool lower_is_better) {
  QualityReached reached;
  const auto is_as_good = [lower_is_better](double one, double other) {
    return lower_is_better ? one <= other : one >= other;
  };
  for (const QualityPoint& point : course.points) {
    if (!reached.best || !is_as_good(reached.best->quality, point.quality)) reached.best = point;
    if (!reached.at_target && is_as_good(point.quality, target)) reached.at_target = point;
    reached.last = point;
  }
  return reached;
}

Json CourseJson(const RunCourse& course) {
  Json points = Json::array();
  for (const QualityPoint& point : course.points) {
    Json& row = points.emplace_back(Json{{"seconds", point.seconds}, {"quality", point.quality}});
    if (point.epoch) row["epoch"] = *point.epoch;
    if (point.samples) row["samples"] = *point.samples;
    row["line"] = point.line;
  }
  Json json = {{"points", std::move(points)}};
  if (course.phases) {
    const PhaseTimes& times = *course.phases;
    json["phases"] = {{"init_seconds", times.init},
                      {"untimed_staging_seconds", times.untimed_staging},
                      {"staging_seconds", times.staging},
                      {"training_seconds", times.training},
                      {"evaluation_seconds", times.evaluation},
                      {"rest_seconds", times.rest},
                      {"total_seconds", times.total}};
  }
  return json;
}

}  // namespace assay::client
