#include "server/runtime/set_verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/rules/rcp.h"
#include "common/rules/score.h"
#include "common/rules/score_window.h"
#include "common/rules/throughput.h"

namespace assay::runtime {
namespace {

rules::RunScore ToScore(const core::Run& run) {
  rules::RunScore score;
  score.compliant = run.facts.is_compliant.value_or(false);
  score.reached_target = run.facts.is_converged.value_or(false);
  if (run.facts.run_start_ms.has_value() && run.facts.run_stop_ms.has_value())
    score.run_ms = static_cast<double>(*run.facts.run_stop_ms - *run.facts.run_start_ms);
  return score;
}

rules::ModelRun ToModel(const core::Run& run) {
  rules::ModelRun model;
  model.compliant = run.facts.is_compliant.value_or(false);
  if (run.facts.run_start_ms) model.run_start_ms = static_cast<double>(*run.facts.run_start_ms);
  if (run.facts.run_stop_ms) model.run_stop_ms = static_cast<double>(*run.facts.run_stop_ms);
  if (run.facts.instance_scale > 0) model.instance_scale = run.facts.instance_scale;
  return model;
}

rules::ConvergenceRun ToConvergence(const core::Run& run, const std::string& benchmark) {
  rules::ConvergenceRun converged{.benchmark = benchmark};
  if (run.facts.global_batch_size > 0) converged.batch_size = run.facts.global_batch_size;
  if (run.facts.is_converged.value_or(false) && run.facts.epoch_count)
    converged.epochs = static_cast<double>(*run.facts.epoch_count);
  return converged;
}

std::optional<double> Finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

core::Convergence ToCore(const rules::ConvergenceVerdict& verdict) {
  if (!verdict.exception.empty()) return {.error = verdict.exception};
  core::Convergence convergence = {.is_passed = verdict.passed,
                                   .verdict = rules::SummaryWord(verdict),
                                   .message = verdict.message,
                                   .normalization = verdict.normalization,
                                   .mean_epochs = Finite(verdict.olympic_mean),
                                   .p_value = Finite(verdict.p_value)};
  if (verdict.reference) convergence.min_epochs = Finite(verdict.reference->min_epochs);
  return convergence;
}

int RunsRequired(const core::Submission& submission, const rules::RuleSet& round) {
  const rules::Benchmark* benchmark = round.FindBenchmark(submission.spec.benchmark);
  return benchmark == nullptr ? 1 : benchmark->runs_required;
}

// Only the closed division is compared with the reference.
void AddConvergence(const core::Submission& submission, std::span<const core::Run> runs,
                    const rules::RuleSet& round, Verdict* verdict) {
  if (submission.spec.division == "open") return;
  std::vector<rules::ConvergenceRun> converged;
  for (const core::Run& run : runs)
    converged.push_back(ToConvergence(run, submission.spec.benchmark));
  const std::optional<rules::ConvergenceVerdict> judged =
      rules::JudgeConvergence(round, submission.spec.benchmark, converged);
  if (!judged) return;
  verdict->convergence = ToCore(*judged);
  if (judged->passed && verdict->score_minutes)
    verdict->convergence->normalized_minutes = *verdict->score_minutes * judged->normalization;
}

Verdict StrongVerdict(const core::Submission& submission, const std::vector<core::Run>& runs,
                      const rules::RuleSet& round) {
  std::vector<rules::RunScore> scores;
  for (const core::Run& run : runs)
    scores.push_back(ToScore(run));
  const int size = submission.is_imported ? 0 : RunsRequired(submission, round);
  const rules::WindowScore window = rules::ScoreWindows(round.scoring(), scores, size);
  const rules::TimeToSolution& result = window.score;
  Verdict verdict;
  verdict.score_minutes = result.minutes;
  const std::span<const core::Run> all(runs);
  AddConvergence(submission,
                 result.minutes ? all.subspan(static_cast<size_t>(window.first),
                                              static_cast<size_t>(window.size))
                                : all,
                 round, &verdict);
  if (!result.minutes.has_value()) {
    verdict.reason = result.reason;
    return verdict;
  }
  verdict.reason = absl::StrFormat("%.3f minutes to solution: %s", *result.minutes,
                                   rules::DescribeScore(round.scoring(), result, window.size));
  if (!window.explanation.empty()) absl::StrAppend(&verdict.reason, "; ", window.explanation);
  return verdict;
}

// The nodes' clocks differ. Each offset was measured when its node started the run, so all that
// counts is told anew by the coordinator's clock, from rank 0 of each instance, which logs.
void CorrectClocks(const std::vector<core::Run>& runs, core::Throughput* throughput) {
  double first = INFINITY, last_start = -INFINITY, last = -INFINITY;
  double first_doubt_ms = 0, last_doubt_ms = 0;
  for (const core::Run& run : runs) {
    if (!rules::IsGood(ToModel(run))) continue;
    if (run.nodes.empty() || run.nodes[0].clock_offset_uncertainty_us <= 0) return;
    const double offset_ms = static_cast<double>(run.nodes[0].clock_offset_us) / 1000;
    const double doubt_ms = static_cast<double>(run.nodes[0].clock_offset_uncertainty_us) / 1000;
    const double start = static_cast<double>(*run.facts.run_start_ms) - offset_ms;
    const double stop = static_cast<double>(*run.facts.run_stop_ms) - offset_ms;
    last_start = std::max(last_start, start);
    first = std::min(first, start);
    last = std::max(last, stop);
    first_doubt_ms = std::max(first_doubt_ms, doubt_ms);
    last_doubt_ms = std::max(last_doubt_ms, doubt_ms);
  }
  if (!std::isfinite(first)) return;
  throughput->corrected_minutes = (last - first) / rules::kMsPerMinute;
  throughput->uncertainty_ms = first_doubt_ms + last_doubt_ms;
  throughput->start_spread_ms = last_start - first;
}

Verdict WeakVerdict(const core::Submission& submission, const std::vector<core::Run>& runs,
                    const rules::RuleSet& round) {
  std::vector<core::Run> kept;
  for (const core::Run& run : runs) {
    const auto& pruned = submission.pruned_runs;
    if (std::find(pruned.begin(), pruned.end(), run.id) == pruned.end()) kept.push_back(run);
  }
  std::vector<rules::ModelRun> models;
  for (const core::Run& run : kept)
    models.push_back(ToModel(run));
  const int pruned_count = static_cast<int>(submission.pruned_runs.size());
  const rules::Throughput result =
      rules::ScoreThroughput(models, RunsRequired(submission, round), pruned_count);
  Verdict verdict;
  AddConvergence(submission, kept, round, &verdict);
  if (!result.is_scored) {
    verdict.reason = result.reason;
    return verdict;
  }
  verdict.throughput = core::Throughput{.model_count = result.model_count,
                                        .pruned_count = pruned_count,
                                        .instance_scale = result.instance_scale().value_or(0),
                                        .time_to_all_minutes = *result.time_to_all_minutes};
  CorrectClocks(kept, &*verdict.throughput);
  verdict.reason = absl::StrFormat(
      "%.4f models per minute: %d models in %.3f minutes, %d failed%s", result.models_per_minute(),
      result.model_count, *result.time_to_all_minutes, result.failed_count,
      pruned_count == 0 ? "" : absl::StrCat(", ", pruned_count, " left out"));
  return verdict;
}

// What is said of a score that has nothing to be compared with. A facility's own rounds need none.
std::string MissingReference(const core::Submission& submission, const rules::RuleSet& round) {
  const rules::Benchmark* benchmark = round.FindBenchmark(submission.spec.benchmark);
  if (benchmark == nullptr || !benchmark->reference_points.empty() || !round.data().is_mlperf ||
      submission.spec.division == "open")
    return "";
  return absl::StrCat("; ", round.name(), " has no reference convergence points for ",
                      benchmark->name, ": convergence is not compared");
}

}  // namespace

Verdict JudgeSet(const core::Submission& submission, const std::vector<core::Run>& runs,
                 const rules::RuleSet& round) {
  Verdict verdict = submission.scaling == "weak" ? WeakVerdict(submission, runs, round)
                                                 : StrongVerdict(submission, runs, round);
  absl::StrAppend(&verdict.reason, MissingReference(submission, round));
  return verdict;
}

}  // namespace assay::runtime
