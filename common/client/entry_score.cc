#include "common/client/entry_score.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/client/resource_json.h"
#include "common/client/score_parts.h"
#include "common/rules/pack_names.h"
#include "common/rules/rcp.h"
#include "common/rules/registry.h"

namespace assay::client {
namespace {

// The positions of the runs that the coordinator scores.
std::vector<size_t> JudgedRuns(const std::vector<v1::Run>& runs) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < runs.size(); ++i)
    if (runs[i].state() == v1::Run::SUCCEEDED) positions.push_back(i);
  return positions;
}

rules::WindowScore WindowOf(const v1::Submission& entry,
                            const std::vector<rules::RunScore>& scores) {
  // History is scored as it was.
  const int size = entry.is_imported() ? 0 : entry.required_run_count();
  return rules::ScoreWindows(ScoringOf(entry), scores, size);
}

v1::ReferenceConvergence ToMessage(const rules::ConvergenceVerdict& verdict) {
  v1::ReferenceConvergence message;
  message.set_error(verdict.exception);
  if (!verdict.exception.empty()) return message;
  message.set_is_passed(verdict.passed);
  message.set_verdict(rules::SummaryWord(verdict));
  message.set_message(verdict.message);
  message.set_normalization(verdict.normalization);
  if (std::isfinite(verdict.olympic_mean)) message.set_mean_epochs(verdict.olympic_mean);
  if (verdict.reference) message.set_min_epochs(verdict.reference->min_epochs);
  if (verdict.p_value && std::isfinite(*verdict.p_value)) message.set_p_value(*verdict.p_value);
  return message;
}

std::optional<v1::ReferenceConvergence> ConvergenceOf(const v1::Submission& entry,
                                                      const std::vector<v1::Run>& runs) {
  if (entry.has_reference()) return entry.reference();
  const v1::SubmissionSpec& spec = entry.spec();
  const rules::RuleSet* round = rules::FindRuleSet(spec.round());
  if (round == nullptr || spec.division() == "open") return std::nullopt;
  std::vector<rules::ConvergenceRun> converged;
  for (const v1::Run& run : runs) {
    rules::ConvergenceRun& one = converged.emplace_back();
    one.benchmark = spec.benchmark();
    if (run.global_batch_size() > 0) one.batch_size = run.global_batch_size();
    if (run.is_converged()) one.epochs = static_cast<double>(run.epoch_count());
  }
  const std::optional<rules::ConvergenceVerdict> verdict =
      rules::JudgeConvergence(*round, spec.benchmark(), converged);
  if (!verdict) return std::nullopt;
  return ToMessage(*verdict);
}

void CountAttempts(const std::vector<v1::Run>& runs, EntryScore* score) {
  score->attempts = static_cast<int>(runs.size());
  for (const v1::Run& run : runs) {
    score->succeeded += run.state() == v1::Run::SUCCEEDED ? 1 : 0;
    score->failed += run.state() == v1::Run::FAILED ? 1 : 0;
    score->cancelled += run.state() == v1::Run::CANCELLED ? 1 : 0;
  }
  score->remaining = score->attempts - score->succeeded - score->failed - score->cancelled;
}

std::string PartWithoutScore(const v1::Submission& entry, const v1::Run& run) {
  if (run.state() != v1::Run::SUCCEEDED)
    return IsEnded(run.state()) ? absl::StrCat(StateText(run.state()), ": not judged")
                                : StateText(run.state());
  if (entry.scaling() != "weak" || !run.is_compliant()) return "fails";
  const auto& pruned = entry.pruned_runs();
  return std::find(pruned.begin(), pruned.end(), run.name()) == pruned.end() ? "counts"
                                                                             : "left out";
}

// A mean is off by no more than what it is of.
std::optional<double> LargestError(std::span<const v1::Run> runs) {
  constexpr double kMinuteUs = 60e6;
  double largest = 0;
  for (const v1::Run& run : runs) {
    if (!run.has_time_error_us()) return std::nullopt;
    largest = std::max(largest, static_cast<double>(run.time_error_us()) / kMinuteUs);
  }
  return largest;
}

// Of the runs that the time averages, as the rules have it.
std::optional<Energy> EnergyOfScore(const std::vector<v1::Run>& runs,
                                    const rules::TimeToSolution& time) {
  std::vector<v1::Run> counted;
  for (const int position : time.counted)
    counted.push_back(runs[static_cast<size_t>(position)]);
  return MeanEnergy(counted);
}

// By the better clock, where all offsets are known.
std::string ClockText(const v1::Throughput& throughput) {
  if (!throughput.has_corrected_minutes()) return "";
  return absl::StrFormat(
      "%.4f min to all by the coordinator's clock, +-%.1f ms; the instances started within %.1f ms",
      throughput.corrected_minutes(), throughput.uncertainty_ms(), throughput.start_spread_ms());
}

Json MinutesOrNull(const std::optional<double>& minutes) {
  return minutes ? Json(*minutes) : Json(nullptr);
}

std::string BoundsText(const std::optional<double>& low, const std::optional<double>& high) {
  return absl::StrCat(low ? absl::StrFormat("%.2f", *low) : "?", " to ",
                      high ? absl::StrFormat("%.2f min", *high) : "?");
}

std::string PreviewText(const rules::ScorePreview& preview) {
  std::string text =
      absl::StrCat(preview.done, " of ", preview.done + preview.remaining, " runs have ended; ");
  if (preview.is_lost) return absl::StrCat(text, "lost: ", preview.note);
  absl::StrAppend(&text, "possible ", BoundsText(preview.least_minutes, preview.most_minutes));
  if (preview.if_like_fastest_minutes) {
    absl::StrAppend(&text, "; if the rest is like the fastest or the slowest so far ",
                    BoundsText(preview.if_like_fastest_minutes, preview.if_like_slowest_minutes));
  }
  if (!preview.note.empty()) absl::StrAppend(&text, "; ", preview.note);
  return text;
}

std::string ConvergenceText(const v1::ReferenceConvergence& reference) {
  if (!reference.error().empty()) return reference.error();
  std::string text = absl::StrCat(reference.verdict(), ": ", reference.message());
  if (reference.has_min_epochs() && reference.has_mean_epochs())
    absl::StrAppendFormat(&text, "; mean %.2f epochs, at least %.2f", reference.mean_epochs(),
                          reference.min_epochs());
  if (reference.has_p_value()) absl::StrAppendFormat(&text, ", p = %.3f", reference.p_value());
  if (!reference.is_passed() || reference.normalization() <= 1) return text;
  if (!reference.has_normalized_score_minutes()) {
    absl::StrAppendFormat(&text, "; the score is to be multiplied with %.4f",
                          reference.normalization());
  } else {
    absl::StrAppendFormat(&text, "; the score is to be multiplied with %.4f: %.2f min",
                          reference.normalization(), reference.normalized_score_minutes());
  }
  return text;
}

}  // namespace

rules::Scoring ScoringOf(const v1::Submission& entry) {
  const std::optional<rules::Counts> counts =
      rules::FromName<rules::Counts>(entry.scoring().counts());
  if (counts.has_value())
    return {.counts = *counts, .failed_runs_allowed = entry.scoring().failed_runs_allowed()};
  const rules::RuleSet* built_in = rules::FindRuleSet(entry.spec().round());
  return (built_in != nullptr ? built_in : rules::BuiltInRuleSets().back())->scoring();
}

rules::RunScore RunScoreOf(const v1::Run& run) {
  rules::RunScore score;
  score.compliant = run.is_compliant() && run.state() == v1::Run::SUCCEEDED;
  score.reached_target = run.is_converged();
  if (run.has_run_start_ms() && run.has_run_stop_ms())
    score.run_ms = static_cast<double>(run.run_stop_ms() - run.run_start_ms());
  return score;
}

EntryScore ScoreOfEntry(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  EntryScore score;
  CountAttempts(runs, &score);
  for (const v1::Run& run : runs)
    score.parts.push_back(PartWithoutScore(entry, run));
  const std::vector<size_t> judged = JudgedRuns(runs);
  std::vector<v1::Run> judged_runs;
  std::vector<rules::RunScore> scores;
  for (const size_t position : judged) {
    judged_runs.push_back(runs[position]);
    scores.push_back(RunScoreOf(runs[position]));
  }
  score.convergence = ConvergenceOf(entry, judged_runs);
  score.touch = TouchEvidenceOf(RunsThatCount(entry, runs));
  if (entry.scaling() == "weak") return score;
  const rules::Scoring scoring = ScoringOf(entry);
  score.window = WindowOf(entry, scores);
  const std::vector<std::string> parts = PartsOf(scores, score.window);
  for (size_t i = 0; i < judged.size(); ++i)
    score.parts[judged[i]] = parts[i];
  // Of more runs than demanded only the end tells which count.
  const bool is_exact =
      entry.required_run_count() == 0 ||
      static_cast<int>(scores.size()) + score.remaining <= entry.required_run_count();
  if (score.remaining > 0 && is_exact)
    score.preview = rules::PreviewScore(scoring, scores, score.remaining);
  if (score.remaining == 0 && score.window.score.minutes) {
    const auto counted = std::span(scores).subspan(static_cast<size_t>(score.window.first),
                                                   static_cast<size_t>(score.window.size));
    score.interval = rules::BootstrapInterval(scoring, counted, {});
    score.error_minutes = LargestError(std::span(judged_runs)
                                           .subspan(static_cast<size_t>(score.window.first),
                                                    static_cast<size_t>(score.window.size)));
    score.energy = EnergyOfScore(judged_runs, score.window.score);
  }
  return score;
}

std::vector<v1::Run> RunsThatCount(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  std::vector<v1::Run> judged;
  std::vector<rules::RunScore> scores;
  for (const size_t position : JudgedRuns(runs)) {
    judged.push_back(runs[position]);
    scores.push_back(RunScoreOf(runs[position]));
  }
  if (entry.scaling() == "weak" && !entry.is_imported()) {
    const auto& pruned = entry.pruned_runs();
    std::erase_if(judged, [&](const v1::Run& run) {
      return !run.is_compliant() ||
             std::find(pruned.begin(), pruned.end(), run.name()) != pruned.end();
    });
    return judged;
  }
  const rules::WindowScore window = WindowOf(entry, scores);
  if (!window.score.minutes) return judged;
  return {judged.begin() + window.first, judged.begin() + window.first + window.size};
}

std::vector<rules::Pruning> PruningsOf(const v1::Submission& entry,
                                       const std::vector<v1::Run>& runs) {
  std::vector<rules::ModelRun> models;
  for (const v1::Run& run : runs) {
    rules::ModelRun& model = models.emplace_back();
    model.compliant = run.is_compliant() && run.state() == v1::Run::SUCCEEDED;
    if (run.has_run_start_ms()) model.run_start_ms = static_cast<double>(run.run_start_ms());
    if (run.has_run_stop_ms()) model.run_stop_ms = static_cast<double>(run.run_stop_ms());
  }
  return rules::Prunings(models, entry.required_run_count());
}

void AddScore(const EntryScore& score, Json* json) {
  (*json)["attempts"] = {{"total", score.attempts},
                         {"judged", score.succeeded},
                         {"failed", score.failed},
                         {"cancelled", score.cancelled},
                         {"remaining", score.remaining}};
  if (score.interval) (*json)["interval"] = IntervalJson(*score.interval);
  if (score.error_minutes) (*json)["score_error_minutes"] = *score.error_minutes;
  if (score.energy) AddEnergy(*score.energy, json);
  if (score.touch) AddTouchEvidence(*score.touch, json);
  if (score.preview) {
    const rules::ScorePreview& preview = *score.preview;
    (*json)["preview"] = {
        {"done", preview.done},
        {"remaining", preview.remaining},
        {"is_lost", preview.is_lost},
        {"least_minutes", MinutesOrNull(preview.least_minutes)},
        {"most_minutes", MinutesOrNull(preview.most_minutes)},
        {"if_like_fastest_minutes", MinutesOrNull(preview.if_like_fastest_minutes)},
        {"if_like_slowest_minutes", MinutesOrNull(preview.if_like_slowest_minutes)},
        {"note", preview.note}};
  }
  if (score.window.windows > 0) (*json)["window"] = WindowJson(score.window);
  if (score.convergence) (*json)["convergence"] = ReferenceJson(*score.convergence);
}

void AddTexts(const v1::Submission& entry, const EntryScore& score, Json* json) {
  if (entry.has_score_minutes()) {
    const double minutes = entry.score_minutes();
    (*json)["score_text"] =
        minutes < 2 ? absl::StrFormat("%.2f s (%.4f min), olympic mean", minutes * 60, minutes)
                    : absl::StrFormat("%.2f min, olympic mean", minutes);
    if (score.error_minutes)
      (*json)["clock_text"] = absl::StrFormat("the nodes' clocks agree with the logs within %.3f s",
                                              *score.error_minutes * 60);
  } else if (entry.has_throughput()) {
    const v1::Throughput& t = entry.throughput();
    (*json)["score_text"] = absl::StrFormat(
        "%.4f models/min: %d models of %d units each in %.2f min, %d pruned", t.models_per_minute(),
        t.model_count(), t.instance_scale(), t.time_to_all_minutes(), t.pruned_count());
    if (std::string clock = ClockText(t); !clock.empty()) (*json)["clock_text"] = clock;
  }
  if (score.failed + score.cancelled > 0) {
    (*json)["attempts_text"] =
        absl::StrFormat("%d runs: %d judged, %d failed, %d cancelled, %d to come", score.attempts,
                        score.succeeded, score.failed, score.cancelled, score.remaining);
  }
  if (score.energy) (*json)["energy_text"] = EnergyText(*score.energy) + ", olympic mean";
  if (score.touch) (*json)["touch_text"] = TouchEvidenceText(*score.touch);
  if (score.interval) (*json)["interval_text"] = IntervalText(*score.interval);
  if (score.preview) (*json)["preview_text"] = PreviewText(*score.preview);
  if (!score.window.explanation.empty()) (*json)["window_text"] = score.window.explanation;
  if (score.convergence) (*json)["reference_text"] = ConvergenceText(*score.convergence);
}

std::string NotMlperfText(const v1::Submission& entry) {
  if (entry.is_mlperf_result() || entry.is_imported()) return "";
  const std::string& benchmark = entry.spec().benchmark();
  if (rules::IsMlperfBenchmark(benchmark)) return "not an MLPerf result: a facility's own round";
  return absl::StrCat("not an MLPerf result: a facility's own round with a benchmark of its own, ",
                      benchmark);
}

}  // namespace assay::client
