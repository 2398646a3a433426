// Runs and a round, for tests of scores.

#ifndef TESTS_RULES_SAMPLE_RUNS_H_
#define TESTS_RULES_SAMPLE_RUNS_H_

#include <cmath>
#include <vector>

#include "common/rules/registry.h"
#include "common/rules/score.h"

namespace assay::testing {

inline const rules::RuleSet& V3() {
  return *rules::FindRuleSet("3.0.0");
}

// Runs that reached the target after so many minutes; infinity: one that did not.
inline std::vector<rules::RunScore> Runs(const std::vector<double>& minutes) {
  std::vector<rules::RunScore> runs;
  for (const double m : minutes) {
    if (std::isfinite(m)) {
      runs.push_back({.compliant = true, .reached_target = true, .run_ms = m * 60000});
    } else {
      runs.push_back({});
    }
  }
  return runs;
}

}  // namespace assay::testing

#endif  // TESTS_RULES_SAMPLE_RUNS_H_
