#include "server/runtime/log_judge.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/rules/check.h"
#include "common/rules/throughput.h"

namespace assay::runtime {
namespace {

// The log stamps milliseconds, cut off.
constexpr int64_t kTouchToleranceMs = 1;

bool HasError(const std::vector<core::Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const core::Finding& finding) {
    return finding.severity == core::Severity::kError;
  });
}

std::optional<int64_t> ToInt64(std::optional<double> value) {
  if (!value.has_value() || !std::isfinite(*value) || std::fabs(*value) > 9e18) return std::nullopt;
  return static_cast<int64_t>(*value);
}

// The agents watch what the round's clock is about: the dataset itself, or its staged copy where
// staging is off the clock (docs/adr/0051). So every touch they report must come after run_start.
std::vector<rules::Finding> CheckTouch(const rules::Facts& facts, const core::Run& run) {
  if (!run.first_touch.has_value() && !run.observed_touch.has_value()) return {rules::NoWitness()};
  std::vector<rules::Finding> findings;
  for (const bool is_attributed : {true, false}) {
    const std::optional<core::GangTouch>& seen =
        is_attributed ? run.first_touch : run.observed_touch;
    if (!seen.has_value()) continue;
    rules::FirstTouch touch;
    touch.touch_ms = seen->at_us / 1000;
    touch.witness = "the agents of the run";
    touch.tolerance_ms = kTouchToleranceMs + (seen->uncertainty_us + 999) / 1000;
    touch.is_attributed = is_attributed;
    for (rules::Finding& finding : rules::CheckFirstTouch(facts.run_start_ms, touch))
      findings.push_back(std::move(finding));
  }
  return findings;
}

class RoundLogJudge final : public LogJudge {
 public:
  explicit RoundLogJudge(std::shared_ptr<const rules::RuleSet> round)
      : round_(std::move(round)), checker_(*round_) {}

  void Add(absl::string_view bytes) override { checker_.Add(bytes); }

  bool DemandsFirstPass() const override { return round_->data().first_pass_from_storage; }

  bool DemandsColdData() const override { return round_->data().data_cold_at_start; }

  rules::Assurance DemandedAssurance() const override {
    return round_->data().first_touch_assurance;
  }

  core::RunFacts Finish(const core::Run& run) override {
    const rules::CheckResult result = checker_.Finish();
    core::RunFacts facts;
    facts.findings = result.findings;
    for (core::Finding& finding : CheckTouch(result.facts, run))
      facts.findings.push_back(std::move(finding));
    facts.is_compliant = result.pass && !HasError(facts.findings);
    facts.is_converged = result.facts.reached_target;
    facts.run_start_ms = ToInt64(result.facts.run_start_ms);
    facts.run_stop_ms = ToInt64(result.facts.run_stop_ms);
    facts.quality = result.facts.quality;
    facts.epoch_count = result.facts.epochs;
    facts.staging_ms = ToInt64(result.facts.staging_ms);
    if (result.facts.global_batch_size.has_value())
      facts.global_batch_size = result.facts.global_batch_size->AsInt64().value_or(0);
    facts.instance_scale = rules::InstanceScale(result.facts).value_or(0);
    return facts;
  }

 private:
  const std::shared_ptr<const rules::RuleSet> round_;
  rules::StreamChecker checker_;
};

}  // namespace

std::unique_ptr<LogJudge> MakeLogJudge(std::shared_ptr<const rules::RuleSet> round) {
  return std::make_unique<RoundLogJudge>(std::move(round));
}

}  // namespace assay::runtime
