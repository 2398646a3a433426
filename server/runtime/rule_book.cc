#include "server/runtime/rule_book.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/file.h"
#include "common/json_reader.h"
#include "common/log.h"
#include "common/rules/borrowing.h"
#include "common/rules/check.h"
#include "common/rules/facility_round.h"
#include "common/rules/hyperparameters.h"
#include "common/rules/pack.h"
#include "common/rules/rcp.h"
#include "common/rules/registry.h"
#include "common/rules/score.h"
#include "common/rules/score_window.h"
#include "common/rules/throughput.h"
#include "common/status.h"
#include "common/toml.h"

namespace assay::runtime {
namespace {

// The log stamps milliseconds, cut off.
constexpr int64_t kTouchToleranceMs = 1;

void Append(const std::vector<rules::Finding>& findings, std::vector<core::Finding>* out) {
  out->insert(out->end(), findings.begin(), findings.end());
}

bool HasError(const std::vector<core::Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const core::Finding& finding) {
    return finding.severity == core::Severity::kError;
  });
}

std::optional<int64_t> ToInt64(std::optional<double> value) {
  if (!value.has_value() || !std::isfinite(*value) || std::fabs(*value) > 9e18) return std::nullopt;
  return static_cast<int64_t>(*value);
}

absl::StatusOr<rules::Hyperparameters> ToValues(
    const std::vector<core::Hyperparameter>& hyperparameters) {
  rules::Hyperparameters values;
  for (const core::Hyperparameter& hyperparameter : hyperparameters) {
    JsonResult parsed = ParseJson(hyperparameter.json_value);
    if (parsed.error != JsonError::kNone)
      return absl::InvalidArgumentError(absl::StrCat("hyperparameter ", hyperparameter.key, ": ",
                                                     hyperparameter.json_value, " is not JSON"));
    if (!values.emplace(hyperparameter.key, std::move(parsed.value)).second)
      return absl::InvalidArgumentError(
          absl::StrCat("hyperparameter ", hyperparameter.key, " is given twice"));
  }
  return values;
}

// The values of an entry that was accepted; what is no JSON, as history may have it, is left out.
rules::Hyperparameters ValuesOf(const core::SubmissionSpec& spec) {
  rules::Hyperparameters values;
  for (const core::Hyperparameter& hyperparameter : spec.hyperparameters) {
    JsonResult parsed = ParseJson(hyperparameter.json_value);
    if (parsed.error == JsonError::kNone)
      values.emplace(hyperparameter.key, std::move(parsed.value));
  }
  return values;
}

rules::BorrowingEntry BorrowingEntryOf(const core::SubmissionSpec& spec) {
  return {.organization = spec.organization,
          .round = spec.round,
          .benchmark = spec.benchmark,
          .division = spec.division,
          .configuration = {.system = spec.system,
                            .dataset = spec.dataset,
                            .nodes = spec.node_count,
                            .ranks_per_node = spec.ranks_per_node,
                            .backend = spec.backend,
                            .staging = spec.staging,
                            .labels = spec.worker_labels},
          .values = ValuesOf(spec),
          .is_borrowed = spec.borrowing.has_value()};
}

std::string JsonOf(const std::optional<JsonValue>& value) {
  return value ? DumpJson(*value) : "";
}

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

template <typename T>
void Default(T value, T* field) {
  if (*field == T{}) *field = std::move(value);
}

core::SubmissionSpec WithDefaults(core::SubmissionSpec spec, const rules::RuleSet& round,
                                  const rules::Benchmark& benchmark) {
  Default(1, &spec.ranks_per_node);
  Default(benchmark.runs_required, &spec.run_count);
  Default(128, &spec.epoch_count_max);
  Default(int64_t{24} * 3600 * 1000, &spec.run_timeout_ms);
  // The backend that every worker has and that is fit for timing.
  Default(std::string("onednn"), &spec.backend);
  Default(std::string("onprem"), &spec.status);
  Default(std::string("node"), &spec.staging);
  spec.round = round.name();
  return spec;
}

// A round and, for a facility's own, the file that defines it.
struct Round {
  const rules::RuleSet* rules = nullptr;
  std::unique_ptr<const rules::RuleSet> owned;
  std::string toml;
};

// Who judges a submission: a round that the book has, or one that is kept with the submission.
struct Judge {
  const rules::RuleSet* round;
  std::unique_ptr<const rules::RuleSet> owned;
};

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
  explicit RoundLogJudge(Judge judge) : judge_(std::move(judge)), checker_(*judge_.round) {}

  void Add(absl::string_view bytes) override { checker_.Add(bytes); }

  core::RunFacts Finish(const core::Run& run) override {
    const rules::CheckResult result = checker_.Finish();
    core::RunFacts facts;
    Append(result.findings, &facts.findings);
    Append(CheckTouch(result.facts, run), &facts.findings);
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
  const Judge judge_;
  rules::StreamChecker checker_;
};

class RoundBook final : public RuleBook {
 public:
  absl::Status AddFacilityRound(const std::string& path) {
    ASSIGN_OR_RETURN(std::string toml, ReadFile(path, kTomlBytesMax));
    Round round;
    ASSIGN_OR_RETURN(round.owned, rules::ParseFacilityRound(toml, path));
    round.rules = round.owned.get();
    round.toml = std::move(toml);
    const std::string name = round.rules->name();
    if (Find(name) != nullptr)
      return absl::AlreadyExistsError(absl::StrCat(path, ": round ", name, " is known already"));
    facility_rounds_.emplace(name, std::move(round));
    return absl::OkStatus();
  }

  std::vector<RoundInfo> Rounds() const override {
    std::vector<RoundInfo> infos;
    for (const rules::RuleSet* round : All()) {
      RoundInfo info;
      info.name = round->name();
      info.digest = round->digest();
      info.is_mlperf_result = round->data().is_mlperf;
      info.label = round->data().label;
      for (const rules::Benchmark& benchmark : round->data().benchmarks)
        info.benchmarks.push_back(benchmark.name);
      infos.push_back(std::move(info));
    }
    return infos;
  }

  // Leaves out what does not hold the rules that it is kept as.
  void AddKept(const std::string& digest, const std::string& text) {
    absl::StatusOr<rules::Pack> pack =
        rules::ReadPack(text, absl::StrCat("the kept rules ", digest));
    if (pack.ok() && pack->digest != digest)
      pack = absl::DataLossError(absl::StrCat("they have the digest ", pack->digest));
    if (pack.ok()) {
      kept_.emplace(digest, std::make_unique<rules::RuleSet>(std::move(pack->data)));
    } else {
      LOG(ERROR) << "kept rules left out digest=" << digest << " status=" << Quoted(pack.status());
    }
  }

  std::map<std::string, std::string> Packs() const override {
    std::map<std::string, std::string> packs;
    for (const rules::RuleSet* round : All())
      packs.emplace(round->digest(), rules::WritePack(round->data(), /*signature=*/""));
    return packs;
  }

  absl::StatusOr<Plan> PlanSubmission(const core::SubmissionSpec& spec) const override {
    const rules::RuleSet* round = Find(spec.round);
    if (round == nullptr)
      return absl::NotFoundError(
          absl::StrCat("there is no round \"", spec.round, "\"; known are ", Names()));
    const rules::Benchmark* benchmark = round->FindBenchmark(spec.benchmark);
    if (benchmark == nullptr) return NoSuchBenchmark(*round, spec.benchmark);
    ASSIGN_OR_RETURN(const rules::Hyperparameters values, ToValues(spec.hyperparameters));
    Plan plan;
    plan.spec = WithDefaults(spec, *round, *benchmark);
    plan.rules = Facts(*round, *benchmark);
    Append(rules::CheckHyperparameters(*round, spec.benchmark, spec.division, values),
           &plan.findings);
    // More runs than demanded are fine for the log check, but not for the score.
    Append(rules::CheckRunCount(*round, spec.benchmark, plan.spec.run_count), &plan.findings);
    return plan;
  }

  BorrowingVerdict CheckBorrowing(const core::SubmissionSpec& spec, const core::Submission& own,
                                  const core::Submission& lender,
                                  core::SubmissionId borrower) const override {
    rules::BorrowingEntry original = BorrowingEntryOf(own.spec);
    if (!borrower.is_none()) original.replaced_by = borrower.ToString();
    const rules::BorrowingEntry from = BorrowingEntryOf(lender.spec);
    const rules::BorrowingEntry proposed = BorrowingEntryOf(spec);
    BorrowingVerdict verdict;
    verdict.findings = rules::CheckBorrowing(original, from, proposed);
    verdict.record.own_created_at_us = own.created_at_us;
    verdict.record.lender_created_at_us = lender.created_at_us;
    for (const rules::BorrowedValue& value :
         rules::CompareBorrowing(original.values, from.values, proposed.values)) {
      if (value.standing == "same") continue;
      verdict.record.changes.push_back({.key = value.key,
                                        .own_json = JsonOf(value.own),
                                        .json_value = JsonOf(value.proposed),
                                        .standing = value.standing});
    }
    return verdict;
  }

  absl::StatusOr<std::unique_ptr<LogJudge>> JudgeLog(
      const core::Submission& submission) const override {
    ASSIGN_OR_RETURN(Judge judge, JudgeOf(submission));
    return std::make_unique<RoundLogJudge>(std::move(judge));
  }

  absl::StatusOr<Verdict> Score(const core::Submission& submission,
                                const std::vector<core::Run>& runs) const override {
    ASSIGN_OR_RETURN(const Judge judge, JudgeOf(submission));
    return submission.scaling == "weak" ? WeakVerdict(submission, runs, *judge.round)
                                        : StrongVerdict(submission, runs, *judge.round);
  }

 private:
  static int RunsRequired(const core::Submission& submission, const rules::RuleSet& round) {
    const rules::Benchmark* benchmark = round.FindBenchmark(submission.spec.benchmark);
    return benchmark == nullptr ? 1 : benchmark->runs_required;
  }

  // Only the closed division is compared with the reference.
  static void AddConvergence(const core::Submission& submission, std::span<const core::Run> runs,
                             const rules::RuleSet& round, Verdict* verdict) {
    if (submission.spec.division == "open") return;
    std::vector<rules::ConvergenceRun> converged;
    for (const core::Run& run : runs)
      converged.push_back(ToConvergence(run, submission.spec.benchmark));
    const std::optional<rules::ConvergenceVerdict> judged =
        rules::JudgeConvergence(round.name(), submission.spec.benchmark, converged);
    if (!judged) return;
    verdict->convergence = ToCore(*judged);
    if (judged->passed && verdict->score_minutes)
      verdict->convergence->normalized_minutes = *verdict->score_minutes * judged->normalization;
  }

  static Verdict StrongVerdict(const core::Submission& submission,
                               const std::vector<core::Run>& runs, const rules::RuleSet& round) {
    std::vector<rules::RunScore> scores;
    for (const core::Run& run : runs)
      scores.push_back(ToScore(run));
    const int size = submission.is_imported ? 0 : RunsRequired(submission, round);
    const rules::WindowScore window = rules::ScoreWindows(round, scores, size);
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
                                     rules::DescribeScore(round, result, window.size));
    if (!window.explanation.empty()) absl::StrAppend(&verdict.reason, "; ", window.explanation);
    return verdict;
  }

  static Verdict WeakVerdict(const core::Submission& submission, const std::vector<core::Run>& runs,
                             const rules::RuleSet& round) {
    std::vector<rules::ModelRun> models;
    for (const core::Run& run : runs)
      models.push_back(ToModel(run));
    const rules::Throughput result =
        rules::ScoreThroughput(models, RunsRequired(submission, round), /*pruned_count=*/0);
    Verdict verdict;
    AddConvergence(submission, runs, round, &verdict);
    if (!result.is_scored) {
      verdict.reason = result.reason;
      return verdict;
    }
    verdict.throughput = core::Throughput{.model_count = result.model_count,
                                          .instance_scale = result.instance_scale().value_or(0),
                                          .time_to_all_minutes = *result.time_to_all_minutes};
    verdict.reason = absl::StrFormat("%.4f models per minute: %d models in %.3f minutes, %d failed",
                                     result.models_per_minute(), result.model_count,
                                     *result.time_to_all_minutes, result.failed_count);
    return verdict;
  }

  std::vector<const rules::RuleSet*> All() const {
    std::vector<const rules::RuleSet*> all = rules::BuiltInRuleSets();
    for (const auto& [name, round] : facility_rounds_)
      all.push_back(round.rules);
    return all;
  }

  std::string Names() const {
    std::vector<std::string> names;
    for (const rules::RuleSet* round : All())
      names.push_back(round->name());
    return absl::StrJoin(names, ", ");
  }

  const rules::RuleSet* Find(const std::string& name) const {
    const auto it = facility_rounds_.find(name);
    return it != facility_rounds_.end() ? it->second.rules : rules::FindRuleSet(name);
  }

  static absl::Status NoSuchBenchmark(const rules::RuleSet& round, const std::string& name) {
    std::vector<std::string> names;
    for (const rules::Benchmark& benchmark : round.data().benchmarks)
      names.push_back(benchmark.name);
    return absl::InvalidArgumentError(absl::StrCat("round ", round.name(), " has no benchmark \"",
                                                   name, "\"; it has ",
                                                   absl::StrJoin(names, ", ")));
  }

  core::RuleFacts Facts(const rules::RuleSet& round, const rules::Benchmark& benchmark) const {
    core::RuleFacts facts;
    facts.digest = round.digest();
    facts.is_mlperf_result = round.data().is_mlperf;
    facts.label = round.data().label;
    facts.required_run_count = benchmark.runs_required;
    facts.quality_target = benchmark.target;
    facts.quality_key = benchmark.quality_key;
    facts.is_staging_timed = round.data().staging_on_the_clock;
    facts.kernel_size = round.name() == "hpc-0.7.0" ? 2 : 3;
    const auto it = facility_rounds_.find(round.name());
    if (it != facility_rounds_.end()) facts.rule_set_toml = it->second.toml;
    return facts;
  }

  // The rules that accepted the submission, whatever its round has come to since. An import of a
  // round that was not known has no digest of ours.
  absl::StatusOr<Judge> JudgeOf(const core::Submission& submission) const {
    const std::string& digest = submission.rules.digest;
    const rules::RuleSet* round = Find(submission.spec.round);
    if (round != nullptr && (digest.empty() || round->digest() == digest))
      return Judge{round, nullptr};
    const auto kept = kept_.find(digest);
    if (kept != kept_.end()) return Judge{kept->second.get(), nullptr};
    if (!submission.rules.rule_set_toml.empty()) {
      absl::StatusOr<std::unique_ptr<const rules::RuleSet>> own =
          rules::ParseFacilityRound(submission.rules.rule_set_toml, submission.spec.round);
      if (own.ok() && (*own)->digest() == digest) {
        const rules::RuleSet* rules = own->get();
        return Judge{rules, *std::move(own)};
      }
    }
    return absl::FailedPreconditionError(absl::StrCat(
        submission.id.ToString(), " is judged by the rules of ", submission.spec.round,
        " with digest ", digest, ", which are not kept here; ",
        round == nullptr ? "there is no round of that name"
                         : absl::StrCat("the round's digest is ", round->digest(), " now"),
        "; restore the database with its table rule_packs, or the round's file as it was"));
  }

  std::map<std::string, Round> facility_rounds_;
  std::map<std::string, std::unique_ptr<const rules::RuleSet>> kept_;  // by digest
};

}  // namespace

absl::StatusOr<std::unique_ptr<RuleBook>> LoadRuleBook(
    const std::vector<std::string>& round_paths,
    const std::map<std::string, std::string>& kept_packs) {
  auto book = std::make_unique<RoundBook>();
  std::vector<std::string> problems;
  for (const std::string& path : round_paths) {
    const absl::Status status = book->AddFacilityRound(path);
    if (absl::IsAlreadyExists(status)) return status;
    if (!status.ok()) problems.emplace_back(status.message());
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  for (const auto& [digest, pack] : kept_packs)
    book->AddKept(digest, pack);
  return std::unique_ptr<RuleBook>(std::move(book));
}

}  // namespace assay::runtime
