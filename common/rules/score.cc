#include "common/rules/score.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace assay::rules {
namespace {

constexpr absl::string_view kV07 = "hpc-0.7.0";

struct Ranked {
  double minutes = 0;
  int position = 0;
};

std::vector<Ranked> Sorted(std::vector<Ranked> runs) {
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Ranked& a, const Ranked& b) { return a.minutes < b.minutes; });
  return runs;
}

// The mean of `runs` without the first and, if `drop_slowest`, the last.
TimeToSolution MeanOfRest(std::vector<Ranked> runs, int dropped, bool drop_slowest) {
  TimeToSolution score = {.dropped = dropped};
  if (!runs.empty()) runs.erase(runs.begin());
  if (drop_slowest && !runs.empty()) runs.pop_back();
  if (runs.empty()) {
    score.reason = "too few runs: none is left without the fastest and the slowest";
    return score;
  }
  double sum = 0;
  for (const Ranked& run : runs) {
    sum += run.minutes;
    score.counted.push_back(run.position);
  }
  score.minutes = sum / static_cast<double>(runs.size());
  return score;
}

}  // namespace

RunScore ScoreOf(const CheckResult& result) {
  return {.compliant = result.pass,
          .reached_target = result.facts.reached_target,
          .run_ms = result.facts.run_ms()};
}

TimeToSolution OlympicScore(std::span<const RunScore> runs, int failed_allowed) {
  std::vector<Ranked> counted;
  int dropped = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].compliant && runs[i].run_ms) {
      counted.push_back({*runs[i].run_ms / kMsPerMinute, static_cast<int>(i)});
    } else {
      ++dropped;
    }
  }
  if (dropped > failed_allowed) {
    return {.reason = absl::StrCat(dropped, " runs failed the check; ", failed_allowed,
                                   " may fail, as the slowest"),
            .dropped = dropped};
  }
  return MeanOfRest(Sorted(std::move(counted)), dropped, dropped == 0);
}

TimeToSolution OlympicScoreV07(std::span<const RunScore> runs) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<Ranked> ranked;
  int never = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool counts = runs[i].reached_target && runs[i].run_ms;
    never += counts ? 0 : 1;
    ranked.push_back({counts ? *runs[i].run_ms / kMsPerMinute : kNever, static_cast<int>(i)});
  }
  if (never > 1) {
    return {
        .reason = absl::StrCat(never, " runs never reached the target; one may, as the slowest"),
        .dropped = never};
  }
  return MeanOfRest(Sorted(std::move(ranked)), never, true);
}

TimeToSolution Score(const RuleSet& rules, std::span<const RunScore> runs) {
  if (rules.name() == kV07) return OlympicScoreV07(runs);
  return OlympicScore(runs, rules.data().failed_runs_allowed);
}

std::string DescribeScore(const RuleSet& rules, const TimeToSolution& score, int runs) {
  const std::string mean = absl::StrCat("olympic mean of ", runs, " runs: ");
  if (score.dropped == 0) return absl::StrCat(mean, "best and worst dropped, all converged");
  const absl::string_view why =
      rules.name() == kV07 ? "has no time to solution" : "failed the check";
  if (score.dropped == 1)
    return absl::StrCat(mean, "best dropped, and as the worst the one that ", why);
  return absl::StrCat(mean, "best dropped, and the ", score.dropped, " that failed the check");
}

}  // namespace assay::rules
