#include "common/rules/score.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace assay::rules {
namespace {

struct Ranked {
  double minutes = 0;
  int position = 0;
};

std::vector<Ranked> Sorted(std::vector<Ranked> runs) {
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Ranked& a, const Ranked& b) { return a.minutes < b.minutes; });
  return runs;
}

// The mean of `runs` without the first and, unless one that was dropped stands for it, the last.
TimeToSolution MeanOfRest(std::vector<Ranked> runs, int dropped) {
  TimeToSolution score = {.dropped = dropped};
  if (!runs.empty()) runs.erase(runs.begin());
  if (dropped == 0 && !runs.empty()) runs.pop_back();
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

// What a run did that has no time to solution.
absl::string_view Failure(Counts counts) {
  return counts == Counts::kReachedTarget ? "had no time to solution" : "failed the check";
}

}  // namespace

RunScore ScoreOf(const CheckResult& result) {
  return {.compliant = result.pass,
          .reached_target = result.facts.reached_target,
          .run_ms = result.facts.run_ms()};
}

bool HasTime(Counts counts, const RunScore& run) {
  const bool does_count = counts == Counts::kReachedTarget ? run.reached_target : run.compliant;
  return does_count && run.run_ms.has_value();
}

TimeToSolution OlympicScore(std::span<const RunScore> runs, Counts counts, int failed_allowed) {
  std::vector<Ranked> counted;
  int dropped = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (HasTime(counts, runs[i])) {
      counted.push_back({*runs[i].run_ms / kMsPerMinute, static_cast<int>(i)});
    } else {
      ++dropped;
    }
  }
  if (dropped > failed_allowed) {
    return {.reason = absl::StrCat(dropped, " runs ", Failure(counts), "; ", failed_allowed,
                                   " may fail, as the slowest"),
            .dropped = dropped};
  }
  return MeanOfRest(Sorted(std::move(counted)), dropped);
}

TimeToSolution Score(const Scoring& scoring, std::span<const RunScore> runs) {
  return OlympicScore(runs, scoring.counts, scoring.failed_runs_allowed);
}

std::string DescribeScore(const Scoring& scoring, const TimeToSolution& score, int runs) {
  const std::string mean = absl::StrCat("olympic mean of ", runs, " runs: ");
  if (score.dropped == 0) return absl::StrCat(mean, "best and worst dropped, all converged");
  const absl::string_view why = Failure(scoring.counts);
  if (score.dropped == 1)
    return absl::StrCat(mean, "best dropped, and as the worst the one that ", why);
  return absl::StrCat(mean, "best dropped, and the ", score.dropped, " that ", why);
}

}  // namespace assay::rules
