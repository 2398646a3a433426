// A judge without rules: it fails, refuses and says too much as often as the seed wants.

#ifndef TESTS_SIM_SIM_JUDGE_H_
#define TESTS_SIM_SIM_JUDGE_H_

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "server/runtime/effect_handler.h"
#include "server/runtime/node_judge.h"
#include "tests/sim/history.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_store.h"

namespace assay::sim {

// What is decided of runs and entries once for all: the same log is judged alike however often.
struct Judgements {
  struct Judgement {
    bool is_against = false;
    bool is_oversized = false;
  };
  std::map<core::RunId, Judgement> runs;
  std::map<core::SubmissionId, Judgement> entries;
  bool is_score_missing = false;  // an entry waits for the next start to be scored
};

class SimJudge final : public runtime::ResultJudge {
 public:
  SimJudge(Network* network, Coverage* coverage, Judgements* judgements)
      : network_(*network), coverage_(*coverage), judgements_(*judgements) {}

  absl::StatusOr<core::RunFacts> JudgeRun(const core::Run& run, const core::Submission& submission,
                                          const std::optional<core::Dataset>&,
                                          const std::vector<core::Finding>& seen) override {
    EXPECT_EQ(run.submission, submission.id);
    for (const core::RunNode& node : run.nodes)
      EXPECT_EQ(node.phase, core::NodePhase::kFinished) << run.id << " is judged too early";
    EXPECT_TRUE(std::any_of(
        run.artifacts.begin(), run.artifacts.end(),
        [&](const auto& artifact) { return artifact.file_name == ResultFileName(run); }))
        << run.id << " is judged without its log";
    if (network_.Percent(network_.troubles.judge_failure_percent)) {
      ++coverage_.met["log that cannot be judged"];
      return absl::DataLossError("its bytes have changed");
    }
    const Judgements::Judgement judgement = Draw(run.id, &judgements_.runs);
    core::RunFacts facts;
    facts.is_compliant = facts.is_converged = !judgement.is_against;
    if (judgement.is_oversized) {
      ++coverage_.met["verdict on a log that is too large for a row"];
      facts.findings = {Oversized()};
    }
    runtime::JudgeNodes(seen, /*is_cold_demanded=*/false, &facts);
    return facts;
  }

  absl::StatusOr<runtime::Verdict> Score(const core::Submission& submission,
                                         const std::vector<core::Run>& runs) override {
    History::CheckCount(submission, std::ssize(runs));
    if (core::IsThroughput(submission.spec)) ++coverage_.met["throughput set that is scored"];
    if (network_.Percent(network_.troubles.judge_failure_percent)) {
      ++coverage_.met["entry that cannot be scored"];
      judgements_.is_score_missing = true;
      return absl::FailedPreconditionError("nobody has its rules");
    }
    const Judgements::Judgement judgement = Draw(submission.id, &judgements_.entries);
    runtime::Verdict verdict{.reason = "scored"};
    if (!judgement.is_against) verdict.score_minutes = 1.0;
    if (judgement.is_oversized) {
      ++coverage_.met["score that is too large for a row"];
      verdict.findings = {Oversized()};
    }
    return verdict;
  }

 private:
  template <typename Id>
  Judgements::Judgement Draw(Id id, std::map<Id, Judgements::Judgement>* drawn) {
    const auto [it, is_new] = drawn->try_emplace(id);
    if (is_new) {
      it->second.is_against = network_.Percent(network_.troubles.verdict_against_percent);
      it->second.is_oversized = network_.Percent(network_.troubles.oversize_percent);
    }
    return it->second;
  }

  static core::Finding Oversized() {
    core::Finding finding;
    finding.rule_id = "R-SIM-001";
    finding.found.assign(2 * kRowBytesMax, 'x');
    return finding;
  }

  Network& network_;
  Coverage& coverage_;
  Judgements& judgements_;
};

}  // namespace assay::sim

#endif  // TESTS_SIM_SIM_JUDGE_H_
