#include "common/rules/rcp.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/rules/t_test.h"

namespace assay::rules {
namespace {

constexpr double kAlpha = 0.05;
constexpr double kTolerance = 1e-4;

// Of a rising list, without its first and its last value.
double MeanOfInner(std::span<const double> rising) {
  if (rising.size() < 3) return std::numeric_limits<double>::quiet_NaN();
  return NumpyMean(rising.subspan(1, rising.size() - 2));
}

// The value at `x` of the line through (x0, y0) and (x1, y1), rounded as the official tool does.
double OnLine(double x, double x0, double y0, double x1, double y1) {
  const double slope = (y1 - y0) / (x1 - x0);
  return slope * (x - x0) + y0;
}

ReferencePoint Measured(ReferenceRecord record, int submission_runs) {
  std::sort(record.epochs.begin(), record.epochs.end());
  ReferencePoint point{.name = std::move(record.name), .batch_size = record.batch_size};
  point.mean = MeanOfInner(record.epochs);
  point.stdev = NumpyStdev(record.epochs);
  point.count = static_cast<int>(record.epochs.size()) - 2;
  point.min_epochs = MinAcceptableMean(point.mean, point.stdev, point.count, submission_runs);
  point.epochs = std::move(record.epochs);
  return point;
}

// Marks what pruning leaves out. A point that was kept is not looked at again after its neighbour
// is gone, so this is not the lower convex hull.
void Prune(std::vector<ReferencePoint>* points) {
  const auto fastest = std::min_element(
      points->begin(), points->end(),
      [](const ReferencePoint& a, const ReferencePoint& b) { return a.mean < b.mean; });
  std::vector<ReferencePoint*> kept;
  for (auto point = points->begin(); point != points->end(); ++point) {
    point->survives_pruning = point >= fastest;
    if (point->survives_pruning) kept.push_back(&*point);
  }
  for (size_t i = 1; i + 1 < kept.size();) {
    const ReferencePoint& low = *kept[i - 1];
    const ReferencePoint& high = *kept[i + 1];
    const double expected =
        OnLine(static_cast<double>(kept[i]->batch_size), static_cast<double>(low.batch_size),
               low.mean, static_cast<double>(high.batch_size), high.mean);
    if (kept[i]->mean > expected) {
      kept[i]->survives_pruning = false;
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

struct References {
  std::vector<ReferencePoint> points;
  int submission_runs = 0;
};

// Of a benchmark that the round does not have, and of one without points, no points.
References ReferencesOf(const RuleSet& rules, absl::string_view name) {
  References references;
  const Benchmark* benchmark = rules.FindBenchmark(name);
  if (benchmark == nullptr || benchmark->reference_points.empty()) return references;
  references.submission_runs = benchmark->runs_required;
  for (const ReferenceRecord& record : benchmark->reference_points)
    references.points.push_back(Measured(record, benchmark->runs_required));
  Prune(&references.points);
  return references;
}

// Compares with `point` and notes what came out.
void Compare(const ReferencePoint& point, int submission_runs, ConvergenceVerdict* verdict) {
  verdict->reference = point;
  verdict->passed = verdict->olympic_mean >= point.mean / point.max_speedup();
  // In this order a mean that is not a number leaves 1.
  verdict->normalization = std::max(1.0, point.mean / verdict->olympic_mean);
  verdict->p_value =
      OneSidedPValue({.mean = verdict->olympic_mean, .stdev = point.stdev, .count = point.count},
                     {.mean = point.mean, .stdev = point.stdev, .count = submission_runs - 2});
}

std::string MissingMessage(int64_t batch_size) {
  return absl::StrCat("Missing RCP, please submit RCP with BS = ", batch_size);
}

// Picks what to compare with, and compares.
void Judge(const References& references, int64_t batch_size, ReferenceMode mode,
           ConvergenceVerdict* verdict) {
  const ReferencePoint* low = nullptr;
  const ReferencePoint* high = nullptr;
  for (const ReferencePoint& point : references.points) {
    if (mode == ReferenceMode::kPruned && !point.survives_pruning) continue;
    if (point.batch_size <= batch_size) low = &point;
    if (point.batch_size >= batch_size && high == nullptr) high = &point;
  }
  if (low != nullptr && low == high) {
    verdict->match = ReferenceMatch::kExact;
    verdict->message = "RCP found";
    Compare(*low, references.submission_runs, verdict);
  } else if (low != nullptr && high != nullptr) {
    verdict->match = ReferenceMatch::kInterpolated;
    verdict->message = "RCP Interpolation";
    Compare(Interpolate(*low, *high, batch_size, references.submission_runs),
            references.submission_runs, verdict);
  } else if (high != nullptr) {
    verdict->match = ReferenceMatch::kSmallest;
    Compare(*high, references.submission_runs, verdict);
    verdict->message = verdict->passed
                           ? "RCP not found but slower convergence on smaller batch size"
                           : MissingMessage(batch_size);
  } else {
    verdict->match = ReferenceMatch::kMissing;
    verdict->message = MissingMessage(batch_size);
  }
}

}  // namespace

std::vector<ReferencePoint> ReferencePoints(const RuleSet& rules, absl::string_view benchmark) {
  return ReferencesOf(rules, benchmark).points;
}

double MinAcceptableMean(double mean, double stdev, int count, int submission_runs) {
  if (stdev == 0) return mean;
  const SampleSummary reference = {.mean = mean, .stdev = stdev, .count = submission_runs - 2};
  double low = 0;
  double high = mean;
  double middle = (low + high) / 2;
  while (high - low > kTolerance) {
    const double p = OneSidedPValue({.mean = middle, .stdev = stdev, .count = count}, reference);
    (p > kAlpha ? high : low) = middle;
    middle = (low + high) / 2;
  }
  return middle;
}

ReferencePoint Interpolate(const ReferencePoint& low, const ReferencePoint& high,
                           int64_t batch_size, int submission_runs) {
  const auto at = [&](double y0, double y1) {
    return OnLine(static_cast<double>(batch_size), static_cast<double>(low.batch_size), y0,
                  static_cast<double>(high.batch_size), y1);
  };
  ReferencePoint point{.batch_size = batch_size};
  point.mean = at(low.mean, high.mean);
  point.stdev = at(low.stdev, high.stdev);
  point.count = 2 * submission_runs;
  point.min_epochs = MinAcceptableMean(point.mean, point.stdev, point.count, submission_runs);
  return point;
}

double ConvergenceSubmission::olympic_mean() const {
  return MeanOfInner(epochs);
}

ConvergenceSubmission SubmissionOf(std::span<const ConvergenceRun> runs) {
  ConvergenceSubmission submission;
  if (runs.empty()) submission.exception = "no result files";
  for (const ConvergenceRun& run : runs) {
    if (submission.exception.empty()) submission.exception = run.exception;
    if (submission.exception.empty() && !run.batch_size)
      submission.exception = "a log names no global_batch_size";
    if (&run == &runs.front()) {
      submission.batch_size = run.batch_size.value_or(0);
      submission.benchmark = run.benchmark;
    } else if (submission.exception.empty() &&
               (submission.batch_size != run.batch_size || submission.benchmark != run.benchmark)) {
      submission.exception = "the logs differ in global_batch_size or submission_benchmark";
    }
    submission.epochs.push_back(run.epochs.value_or(kNotConverged));
    submission.not_converged += run.epochs ? 0 : 1;
  }
  std::sort(submission.epochs.begin(), submission.epochs.end());
  return submission;
}

ConvergenceVerdict CheckConvergence(const RuleSet& rules, const ConvergenceSubmission& submission,
                                    ReferenceMode mode) {
  ConvergenceVerdict verdict;
  if (!submission.exception.empty()) {
    verdict.exception = submission.exception;
    return verdict;
  }
  verdict.olympic_mean = submission.olympic_mean();
  if (submission.not_converged > 1) {
    verdict.message = "Insufficient convergence";
    return verdict;
  }
  const References references = ReferencesOf(rules, submission.benchmark);
  if (references.points.empty()) {
    verdict.message = "Cannot find any RCPs";
    return verdict;
  }
  Judge(references, submission.batch_size, mode, &verdict);
  return verdict;
}

std::optional<ConvergenceVerdict> JudgeConvergence(const RuleSet& rules,
                                                   absl::string_view benchmark,
                                                   std::span<const ConvergenceRun> runs) {
  const Benchmark* known = rules.FindBenchmark(benchmark);
  if (runs.empty() || known == nullptr || known->reference_points.empty() ||
      known->reference_unit != ReferenceUnit::kEpochs)
    return std::nullopt;
  return CheckConvergence(rules, SubmissionOf(runs), ReferenceMode::kPruned);
}

std::string SummaryWord(const ConvergenceVerdict& verdict) {
  if (verdict.passed) return "Pass";
  if (verdict.message == "RCP found") return "Fail";
  if (verdict.message == "RCP Interpolation") return "Interp. Fail";
  if (absl::StartsWith(verdict.message, "Missing RCP")) return "Missing";
  if (verdict.message == "Cannot find any RCPs") return "No RCP";
  return "Unknown state";
}

}  // namespace assay::rules
