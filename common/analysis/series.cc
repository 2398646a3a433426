#include "common/analysis/series.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::analysis {
namespace {

constexpr double kSecondsPerMinute = 60;

// Times of logs are in whole milliseconds, and nothing that a node does is repeated to better than
// this; without it three equal times would make a fourth suspicious.
constexpr double kTimeSpreadMin = 1e-4;

// The spread of the mean of so many whole numbers that rounding alone makes, of its logarithm.
double EpochSpreadMin(const SeriesPoint& point) {
  return 1 / (std::sqrt(12.0 * std::max(1, point.run_count)) * point.epochs);
}

double SpreadMin(const SeriesPoint& point, Measure measure) {
  return measure == Measure::kEpochs ? EpochSpreadMin(point) : kTimeSpreadMin;
}

double GeometricMean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values)
    sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

bool IsAbout(const ChangeDecision& decision, Measure measure) {
  return !decision.measure || *decision.measure == measure;
}

// One measure of a series, on its way to its history.
class Judge {
 public:
  Judge(std::span<const SeriesPoint> points, Measure measure, const SeriesOptions& options)
      : points_(points), options_(options) {
    history_.measure = measure;
    for (const SeriesPoint& point : points)
      values_.push_back(ValueOf(point, measure));
  }

  MeasureHistory Run(std::span<const ChangeDecision> decisions) {
    const std::vector<ChangeDecision> last = LastDecisions(decisions);
    AddMarked(last);
    AddFound();
    Veto(last);
    std::sort(history_.changes.begin(), history_.changes.end(),
              [](const Change& a, const Change& b) { return a.first < b.first; });
    SetRatios();
    JudgeEach();
    return std::move(history_);
  }

 private:
  int PositionOf(const std::string& set) const {
    const auto found = std::find_if(points_.begin(), points_.end(),
                                    [&](const SeriesPoint& point) { return point.set == set; });
    return found == points_.end() ? -1 : static_cast<int>(found - points_.begin());
  }

  // Of each set of the series the last decision about this measure.
  std::vector<ChangeDecision> LastDecisions(std::span<const ChangeDecision> decisions) const {
    std::vector<ChangeDecision> last;
    for (const ChangeDecision& decision : decisions) {
      if (!IsAbout(decision, history_.measure) || PositionOf(decision.set) < 0) continue;
      const auto same = std::find_if(last.begin(), last.end(), [&](const ChangeDecision& other) {
        return other.set == decision.set;
      });
      if (same == last.end()) {
        last.push_back(decision);
      } else if (same->time_ms <= decision.time_ms) {
        *same = decision;
      }
    }
    return last;
  }

  void AddMarked(std::span<const ChangeDecision> decisions) {
    for (const ChangeDecision& decision : decisions) {
      const int first = PositionOf(decision.set);
      if (decision.kind == ChangeDecision::Kind::kMark && first > 0)
        history_.changes.push_back({.first = first, .decision = decision});
    }
    std::sort(history_.changes.begin(), history_.changes.end(),
              [](const Change& a, const Change& b) { return a.first < b.first; });
  }

  // Between what is marked.
  void AddFound() {
    std::vector<int> borders = {0};
    for (const Change& change : history_.changes)
      borders.push_back(change.first);
    borders.push_back(static_cast<int>(values_.size()));
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      const auto part = std::span(values_).subspan(
          static_cast<size_t>(borders[i]), static_cast<size_t>(borders[i + 1] - borders[i]));
      for (const ChangePoint& found : FindChanges(part, options_.changes))
        history_.changes.push_back({.first = borders[i] + found.first, .p_value = found.p_value});
    }
  }

  void Veto(std::span<const ChangeDecision> decisions) {
    for (const ChangeDecision& decision : decisions) {
      if (decision.kind != ChangeDecision::Kind::kVeto) continue;
      const int position = PositionOf(decision.set);
      for (Change& change : history_.changes) {
        if (!change.p_value || std::abs(change.first - position) > kVetoReach) continue;
        change.is_vetoed = true;
        change.decision = decision;
      }
    }
  }

  double Level(int begin, int end) const {
    return GeometricMean(
        std::span(values_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  }

  void SetRatios() {
    for (size_t i = 0; i < history_.changes.size(); ++i) {
      const int begin = i == 0 ? 0 : history_.changes[i - 1].first;
      const int end = i + 1 == history_.changes.size() ? static_cast<int>(values_.size())
                                                       : history_.changes[i + 1].first;
      Change& change = history_.changes[i];
      change.ratio = Level(change.first, end) / Level(begin, change.first);
    }
  }

  void JudgeEach() {
    int begin = 0;
    for (int i = 0; i < static_cast<int>(values_.size()); ++i) {
      for (const Change& change : history_.changes)
        if (change.first == i && !change.is_vetoed) begin = i;
      history_.judgements.push_back(JudgeOne(begin, i));
    }
  }

  Judgement JudgeOne(int begin, int position) const {
    Judgement judgement = {.earlier_count = position - begin};
    if (judgement.earlier_count < options_.earlier_min) return judgement;
    const auto earlier = std::span(values_).subspan(static_cast<size_t>(begin),
                                                    static_cast<size_t>(position - begin));
    const double spread_min = SpreadMin(points_[static_cast<size_t>(position)], history_.measure);
    judgement.interval = PredictNext(earlier, options_.confidence, spread_min);
    if (!judgement.interval) return judgement;
    const double value = values_[static_cast<size_t>(position)];
    judgement.standing = value < judgement.interval->low    ? Standing::kLower
                         : value > judgement.interval->high ? Standing::kHigher
                                                            : Standing::kExpected;
    return judgement;
  }

  const std::span<const SeriesPoint> points_;
  const SeriesOptions& options_;
  std::vector<double> values_;
  MeasureHistory history_;
};

}  // namespace

std::string TextOf(const SeriesKey& key) {
  std::string text = absl::StrCat(key.benchmark, " on ", key.system, ", ", key.round, " ",
                                  key.division, " ", key.scaling);
  if (key.scale > 0) absl::StrAppend(&text, ", ", key.scale, key.scale == 1 ? " unit" : " units");
  if (key.batch_size > 0) absl::StrAppend(&text, ", batch ", key.batch_size);
  return text;
}

std::optional<SeriesPoint> PointOf(const RunSet& set, int64_t time_ms) {
  const std::vector<TimedRun> runs = CountedRuns(set);
  if (runs.empty()) return std::nullopt;
  std::vector<double> seconds, epochs;
  for (const TimedRun& run : runs) {
    seconds.push_back(ValueOf(run, Measure::kEpochSeconds));
    epochs.push_back(run.epochs);
  }
  return SeriesPoint{.set = set.name,
                     .time_ms = time_ms,
                     .epoch_seconds = GeometricMean(seconds),
                     .epochs = GeometricMean(epochs),
                     .run_count = static_cast<int>(runs.size())};
}

absl::string_view NameOf(Standing standing) {
  switch (standing) {
    case Standing::kTooFew:
      return "too_few";
    case Standing::kExpected:
      return "expected";
    case Standing::kLower:
      return "lower";
    case Standing::kHigher:
      return "higher";
  }
  return "";
}

double ValueOf(const SeriesPoint& point, Measure measure) {
  switch (measure) {
    case Measure::kMinutes:
      return point.epochs * point.epoch_seconds / kSecondsPerMinute;
    case Measure::kEpochs:
      return point.epochs;
    case Measure::kEpochSeconds:
      return point.epoch_seconds;
  }
  return 0;
}

Series JudgeSeries(SeriesKey key, std::vector<SeriesPoint> points,
                   std::span<const ChangeDecision> decisions, const SeriesOptions& options) {
  std::stable_sort(points.begin(), points.end(), [](const SeriesPoint& a, const SeriesPoint& b) {
    return a.time_ms < b.time_ms;
  });
  Series series = {.key = std::move(key), .points = std::move(points)};
  for (const Measure measure : {Measure::kEpochSeconds, Measure::kEpochs})
    series.measures.push_back(Judge(series.points, measure, options).Run(decisions));
  return series;
}

}  // namespace assay::analysis
