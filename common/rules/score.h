// Scores of a set of runs: time to solution in minutes (rules specification, section 5.1).

#ifndef COMMON_RULES_SCORE_H_
#define COMMON_RULES_SCORE_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/rules/check.h"

namespace assay::rules {

inline constexpr double kMsPerMinute = 60000;

// One run of a set, as far as its score goes.
struct RunScore {
  bool compliant = false;       // the check passed, so the target was met as well
  bool reached_target = false;  //
  std::optional<double> run_ms;
};

RunScore ScoreOf(const CheckResult& result);

struct TimeToSolution {
  std::optional<double> minutes;  // nullopt: no score, see `reason`
  std::string reason;             // why there is none; empty otherwise
  int dropped = 0;                // runs that did not count because they failed
  std::vector<int> counted;       // positions in the input of the runs that were averaged
};

// True if the run has a time to solution: it counts, and did end.
bool HasTime(Counts counts, const RunScore& run);

// The olympic score: runs without a time to solution are dropped, more than `failed_allowed` of
// them leave no score; of the rest the fastest is left out, and the slowest too unless a dropped
// run stands for it; mean of what remains. So do the official summarizer, with Counts::kCompliant,
// and the published figures of v0.7, which asked for no compliance, with kReachedTarget.
TimeToSolution OlympicScore(std::span<const RunScore> runs, Counts counts, int failed_allowed);

// As the round has it.
TimeToSolution Score(const Scoring& scoring, std::span<const RunScore> runs);

// How `score`, which has minutes, came about, in words: "olympic mean of 5 runs: best and worst
// dropped, all converged". `runs`: how many it was computed from.
std::string DescribeScore(const Scoring& scoring, const TimeToSolution& score, int runs);

}  // namespace assay::rules

#endif  // COMMON_RULES_SCORE_H_
