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

// The official score: runs that fail the check are dropped, more than `failed_allowed` of them
// leave no score; of the rest the fastest is left out, and the slowest too unless a dropped run
// stands for it; mean of what remains.
TimeToSolution OlympicScore(std::span<const RunScore> runs, int failed_allowed = 1);

// The rule behind the published v0.7 figures: a run that never reached the target, or has no
// run_stop, ranks as infinitely slow; fastest and slowest are left out; mean of what remains. It
// asks for no compliance. No score if more than one run ranks infinite, or fewer than three ran.
TimeToSolution OlympicScoreV07(std::span<const RunScore> runs);

// Either, by round: OlympicScoreV07 for hpc-0.7.0, else OlympicScore.
TimeToSolution Score(const RuleSet& rules, std::span<const RunScore> runs);

// How `score`, which has minutes, came about, in words: "olympic mean of 5 runs: best and worst
// dropped, all converged". `runs`: how many it was computed from.
std::string DescribeScore(const RuleSet& rules, const TimeToSolution& score, int runs);

}  // namespace assay::rules

#endif  // COMMON_RULES_SCORE_H_
