// Reference convergence points: a closed submission must not converge significantly faster, in
// epochs, than the reference implementation does at the same batch size (rules specification,
// section 4.5). The same verdicts, messages and numbers as the official checker, to the last bit;
// the p-value is ours. Pure functions, safe from any thread.
//
//   std::vector<ConvergenceRun> runs;
//   for (const std::string& log : logs) runs.push_back(ReadConvergence(log));
//   const ConvergenceVerdict verdict =
//       CheckConvergence(rules, SubmissionOf(runs), ReferenceMode::kPruned);

#ifndef COMMON_RULES_RCP_H_
#define COMMON_RULES_RCP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/ruleset.h"

namespace assay::rules {

// ------------------------------------------------------------------------------------ references

// How the reference converges at one batch size, and how fast a submission may.
struct ReferencePoint {
  std::string name;              // "cosmoflow_ref_128"; empty for an interpolated point
  int64_t batch_size = 0;        // global
  std::vector<double> epochs;    // rising, one for each run; empty for an interpolated point
  double mean = 0;               // without the fastest and the slowest run
  double stdev = 0;              // of all runs, divided by their count
  int count = 0;                 // runs, as the t-test counts them
  double min_epochs = 0;         // the smallest mean of a submission that is not significantly less
  bool survives_pruning = true;  // false: it lies above what its neighbours lead to expect

  double max_speedup() const { return mean / min_epochs; }
};

// The points of a benchmark of the round, by rising batch size. Empty where there are none: round
// 0.7, facilities' rounds.
std::vector<ReferencePoint> ReferencePoints(const RuleSet& rules, absl::string_view benchmark);

// Which points count. The package checker and the summarizer use kPruned.
enum class ReferenceMode { kPruned, kFull };

// The smallest mean, to 1e-4, of a submission of `submission_runs` runs that a one-sided t-test at
// 0.05 does not tell from a reference with these figures; `mean` itself where there is no spread.
double MinAcceptableMean(double mean, double stdev, int count, int submission_runs);

// The point for a batch size between two others: mean and deviation on the line through them.
ReferencePoint Interpolate(const ReferencePoint& low, const ReferencePoint& high,
                           int64_t batch_size, int submission_runs);

// ----------------------------------------------------------------------------------- submissions

// What the official checker reads from one log, by its own, simpler reader.
struct ConvergenceRun {
  std::optional<int64_t> batch_size;  // global; the last in the log
  std::string benchmark;              // likewise
  std::optional<double> epochs;       // to convergence (samples for OpenFold); none: not converged
  std::string exception;              // the checker dies of this log: "KeyError('status')"
};
ConvergenceRun ReadConvergence(absl::string_view log_bytes);

// A set of runs as one submission.
struct ConvergenceSubmission {
  std::string benchmark;
  int64_t batch_size = 0;
  std::vector<double> epochs;  // rising; kNotConverged for a run that did not
  std::string exception;       // the first of the runs', or that they differ
  int not_converged = 0;

  // Mean without the fastest and the slowest run; NaN of fewer than three.
  double olympic_mean() const;
};
inline constexpr double kNotConverged = 1e9;

// Runs that name different batch sizes or benchmarks, or none, give an exception.
ConvergenceSubmission SubmissionOf(std::span<const ConvergenceRun> runs);

// --------------------------------------------------------------------------------------- verdict

enum class ReferenceMatch {
  kExact,         // a point has the submission's batch size
  kInterpolated,  // points on both sides
  kSmallest,      // all points have larger batches: compared with the smallest of them
  kMissing,       // all points have smaller batches: the submitter owes one
  kNone,          // the round has no points for the benchmark
};

struct ConvergenceVerdict {
  bool passed = false;
  std::string message;    // the official wording
  std::string exception;  // not empty: the official checker dies, and there is no verdict
  ReferenceMatch match = ReferenceMatch::kNone;
  // What the score must be multiplied with if it passed: reference mean / submission's mean, at
  // least 1. Also given where it failed.
  double normalization = 1;
  double olympic_mean = 0;  // of the submission, in epochs
  // The point compared with, measured or interpolated; none for kMissing and kNone.
  std::optional<ReferencePoint> reference;
  // One-sided, of "not faster than the reference", with the reference's deviation for both, as
  // min_epochs has it: above 0.05 where the verdict is a pass, but for the 1e-4 of min_epochs.
  std::optional<double> p_value;

  // The factor that the official checker would write into scaling.json, if it writes the file.
  std::optional<double> scaling_factor() const {
    if (!passed || normalization <= 1) return std::nullopt;
    return normalization;
  }
};

// Judges a submission of a benchmark under a rule set.
ConvergenceVerdict CheckConvergence(const RuleSet& rules, const ConvergenceSubmission& submission,
                                    ReferenceMode mode);

// The verdict on runs of which the facts are known instead of the logs, against the pruned points.
// None without runs, for a benchmark without points in the round, and for OpenFold, whose epochs
// are counted in samples, which the facts do not tell.
std::optional<ConvergenceVerdict> JudgeConvergence(const RuleSet& rules,
                                                   absl::string_view benchmark,
                                                   std::span<const ConvergenceRun> runs);

// The word of the official summary's column RCP: Pass, Fail, Interp. Fail, Missing, No RCP or
// Unknown state.
std::string SummaryWord(const ConvergenceVerdict& verdict);

}  // namespace assay::rules

#endif  // COMMON_RULES_RCP_H_
