#include "common/package/set_score.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/package/json_file.h"
#include "common/rules/power.h"
#include "common/rules/registry.h"
#include "common/status.h"

namespace assay::package {
namespace {

// The rules by which the official tools judge a round; null for a facility's own.
const rules::RuleSet* OfficialRules(const rules::RuleSet& rules) {
  const std::string& official = rules.data().official_round;
  if (official.empty() || official == rules.name()) return official.empty() ? nullptr : &rules;
  return rules::FindRuleSet(official);
}

std::optional<double> TotalScale(const JsonValue& description) {
  int64_t nodes = 0;
  int64_t accelerators = 0;
  if (!absl::SimpleAtoi(MemberText(description, "number_of_nodes"), &nodes)) return std::nullopt;
  if (!absl::SimpleAtoi(MemberText(description, "accelerators_per_node"), &accelerators))
    return std::nullopt;
  return static_cast<double>(nodes) * static_cast<double>(std::max<int64_t>(accelerators, 1));
}

// ---------------------------------------------------------------------------------------- power

absl::StatusOr<double> FileEnergy(const TreeReader& tree, const std::string& path,
                                  absl::string_view name, double run_ms) {
  ASSIGN_OR_RETURN(const std::string log, tree.Read(path, kLogBytesMax));
  return absl::StartsWith(name, "sw_") ? rules::SwitchEnergy(log, run_ms)
                                       : rules::NodeEnergy(log, run_ms);
}

absl::StatusOr<double> RunEnergy(const TreeReader& tree, const std::string& directory,
                                 const PowerFolder& power, double run_ms) {
  double sum = 0;
  bool has_node = false;
  for (const std::string& name : power.files) {
    if (!absl::StartsWith(name, "node_") && !absl::StartsWith(name, "sw_")) continue;
    has_node = has_node || absl::StartsWith(name, "node_");
    const absl::StatusOr<double> energy = FileEnergy(tree, JoinPath(directory, name), name, run_ms);
    if (!energy.ok()) return Annotate(energy.status(), absl::StrCat(power.run, "/", name));
    sum += *energy;
  }
  if (!has_node) return absl::InvalidArgumentError(absl::StrCat(power.run, " has no node_*.txt"));
  return sum;
}

void ReadEnergies(SetScore* set) {
  const ResultFolder& folder = set->judged.folder;
  if (folder.power.empty()) return;
  const absl::StatusOr<TreeReader> tree = TreeReader::Open(folder.path);
  if (!tree.ok()) return;
  set->energies.resize(set->judged.runs.size());
  for (size_t i = 0; i < set->judged.runs.size(); ++i) {
    const JudgedRun& run = set->judged.runs[i];
    const std::optional<double> run_ms = run.result.facts.run_ms();
    for (const PowerFolder& power : folder.power) {
      if (!run_ms || power.run != absl::StripSuffix(run.file_name, ".txt")) continue;
      const std::string directory = JoinPath(JoinPath(folder.path, "power"), power.run);
      const absl::StatusOr<double> energy = RunEnergy(*tree, directory, power, *run_ms);
      if (energy.ok()) {
        set->energies[i] = *energy;
      } else {
        set->notes.push_back(absl::StrCat("power: ", energy.status().message()));
      }
    }
  }
}

// ------------------------------------------------------------------------------------- official

void Summarize(const SetScore& set, const rules::RuleSet& rules,
               const std::vector<rules::RunScore>& scores, OfficialScore* official) {
  rules::SummaryInput input;
  input.score = Score(rules.scoring(), scores);
  input.energy = rules::ScoredEnergy(input.score, set.energies, /*scaling_factor=*/1);
  input.is_closed = MemberText(set.judged.folder.system_description, "division") == "closed";
  input.submission = official->submission;
  input.verdict = official->pruned;
  input.shipped_scaling = set.shipped_scaling;
  official->summary = rules::Summarize(input);
}

// Judges the logs once more where the official tools have other rules for the round.
OfficialScore Official(const SetScore& set, const rules::RuleSet& rules,
                       const rules::RuleSet& round) {
  OfficialScore official{.rule_set = rules.name()};
  std::vector<rules::RunScore> scores;
  std::vector<rules::ModelRun> models;
  std::vector<rules::ConvergenceRun> converged;
  for (const JudgedRun& run : set.judged.runs) {
    const rules::CheckResult result = &rules == &round ? run.result : Check(run.log, rules);
    official.compliant.push_back(result.pass);
    scores.push_back(rules::ScoreOf(result));
    models.push_back(rules::ModelRunOf(result));
    converged.push_back(rules::ReadConvergence(run.log));
  }
  official.submission = rules::SubmissionOf(converged);
  official.pruned = CheckConvergence(rules, official.submission, rules::ReferenceMode::kPruned);
  official.full = CheckConvergence(rules, official.submission, rules::ReferenceMode::kFull);
  if (set.is_weak()) {
    const rules::Benchmark* benchmark = rules.FindBenchmark(set.judged.folder.benchmark);
    official.throughput =
        rules::ScoreThroughput(models, benchmark == nullptr ? 1 : benchmark->runs_required,
                               static_cast<int>(set.judged.folder.pruned_files.size()));
  } else {
    official.documented = rules::OlympicScore(scores, rules::Counts::kReachedTarget,
                                              rules.scoring().failed_runs_allowed);
    Summarize(set, rules, scores, &official);
  }
  return official;
}

void AddNotes(SetScore* set) {
  const JudgedFolder& judged = set->judged;
  if (!judged.score.reason.empty()) set->notes.insert(set->notes.begin(), judged.score.reason);
  if (judged.throughput) {
    std::optional<int64_t> total;
    if (set->total_scale) total = static_cast<int64_t>(*set->total_scale);
    for (std::string& problem : CheckScales(*judged.throughput, total))
      set->notes.push_back(std::move(problem));
  }
  if (!set->window.explanation.empty() && set->window.score.minutes) {
    set->notes.push_back(absl::StrFormat("more runs than demanded: %.3f min by %s",
                                         *set->window.score.minutes, set->window.explanation));
  }
}

}  // namespace

absl::StatusOr<SetScore> ScoreFolder(const ResultFolder& folder, const rules::RuleSet& rules) {
  SetScore set;
  ASSIGN_OR_RETURN(set.judged, JudgeFolder(folder, rules));
  set.total_scale = TotalScale(folder.system_description);
  if (folder.scaling_json) {
    const absl::StatusOr<double> factor = ParseScalingFactor(*folder.scaling_json);
    if (factor.ok()) {
      set.shipped_scaling = *factor;
    } else {
      set.notes.push_back(absl::StrCat("scaling.json: ", factor.status().message()));
    }
  }
  ReadEnergies(&set);
  if (!set.is_weak()) {
    std::vector<rules::RunScore> scores;
    for (const JudgedRun& run : set.judged.runs)
      scores.push_back(rules::ScoreOf(run.result));
    const rules::Benchmark* benchmark = rules.FindBenchmark(folder.benchmark);
    const int required = benchmark == nullptr ? 0 : benchmark->runs_required;
    set.window = rules::ScoreWindows(rules.scoring(), scores, required);
    set.interval = rules::BootstrapInterval(rules.scoring(), scores, {});
  }
  const rules::RuleSet* official = OfficialRules(rules);
  if (official != nullptr) set.official = Official(set, *official, rules);
  set.judged.DropLogs();
  AddNotes(&set);
  return set;
}

}  // namespace assay::package
