#include "server/runtime/rule_book.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/file.h"
#include "common/json_reader.h"
#include "common/log.h"
#include "common/rules/borrowing.h"
#include "common/rules/facility_round.h"
#include "common/rules/hyperparameters.h"
#include "common/rules/pack.h"
#include "common/rules/registry.h"
#include "common/status.h"
#include "common/toml.h"
#include "server/runtime/log_judge.h"
#include "server/runtime/set_verdict.h"

namespace assay::runtime {
namespace {

void Append(const std::vector<rules::Finding>& findings, std::vector<core::Finding>* out) {
  out->insert(out->end(), findings.begin(), findings.end());
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

std::map<std::string, std::string> ProgramOf(const core::Workload& workload) {
  const auto* const command = std::get_if<core::CommandWorkload>(&workload);
  if (command == nullptr) return {};
  return {{"command", absl::StrJoin(command->command, " ")},
          {"launcher", command->launcher},
          {"source", command->source ? command->source->sha256 : ""},
          {"image", command->image ? command->image->sha256 : ""},
          {"env", absl::StrJoin(command->env, " ", absl::PairFormatter("="))}};
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
                            .backend = core::BackendOf(spec.workload),
                            .staging = spec.staging,
                            .labels = spec.worker_labels,
                            .program = ProgramOf(spec.workload)},
          .values = ValuesOf(spec),
          .is_borrowed = spec.borrowing.has_value()};
}

std::string JsonOf(const std::optional<JsonValue>& value) {
  return value ? DumpJson(*value) : "";
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
  if (auto* trainer = std::get_if<core::TrainerWorkload>(&spec.workload)) {
    // The backend that every worker has and that is fit for timing.
    Default(std::string("onednn"), &trainer->backend);
  } else if (auto* command = std::get_if<core::CommandWorkload>(&spec.workload)) {
    Default(std::string("per-rank"), &command->launcher);
    Default(std::string("file"), &command->log);
    Default(10, &command->stop_grace_s);
  }
  Default(std::string("onprem"), &spec.status);
  Default(std::string("node"), &spec.staging);
  Default(std::string(core::kTimeToSolution), &spec.metric);
  spec.round = round.name();
  return spec;
}

using RulesRef = std::shared_ptr<const rules::RuleSet>;

// A facility's own round and the file that defines it.
struct Round {
  RulesRef rules;
  std::string toml;
};

class RoundBook final : public RuleBook {
 public:
  absl::Status AddFacilityRound(const std::string& path) {
    ASSIGN_OR_RETURN(std::string toml, ReadFile(path, kTomlBytesMax));
    Round round;
    ASSIGN_OR_RETURN(round.rules, rules::ParseFacilityRound(toml, path));
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
      kept_.emplace(digest, std::make_shared<rules::RuleSet>(std::move(pack->data)));
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
    const RulesRef round = Find(spec.round);
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
    // More runs than demanded are fine for the log check, but not for the score; of instances all
    // count.
    if (core::IsThroughput(plan.spec)) {
      Append(rules::CheckInstanceCount(*round, spec.benchmark, plan.spec.run_count),
             &plan.findings);
    } else {
      Append(rules::CheckRunCount(*round, spec.benchmark, plan.spec.run_count), &plan.findings);
    }
    return plan;
  }

  std::vector<core::Finding> CheckDataset(const core::SubmissionSpec& spec,
                                          const core::Dataset& dataset) const override {
    std::vector<core::Finding> findings;
    if (const RulesRef round = Find(spec.round); round != nullptr)
      Append(rules::CheckSampleCounts(*round, spec.benchmark, spec.division,
                                      dataset.train_sample_count, dataset.eval_sample_count),
             &findings);
    return findings;
  }

  BorrowingVerdict CheckBorrowing(const core::SubmissionSpec& spec, const core::Submission& own,
                                  const core::Submission& lender,
                                  core::SubmissionId borrower) const override {
    rules::BorrowingEntry original = BorrowingEntryOf(own.spec);
    if (!borrower.is_none()) original.replaced_by = borrower.ToString();
    original.is_withdrawn = own.withdrawn_at_us > 0;
    rules::BorrowingEntry from = BorrowingEntryOf(lender.spec);
    from.is_withdrawn = lender.withdrawn_at_us > 0;
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
    ASSIGN_OR_RETURN(RulesRef round, RulesOf(submission));
    return MakeLogJudge(std::move(round));
  }

  absl::StatusOr<Verdict> Score(const core::Submission& submission,
                                const std::vector<core::Run>& runs) const override {
    ASSIGN_OR_RETURN(const RulesRef round, RulesOf(submission));
    return JudgeSet(submission, runs, *round);
  }

 private:
  std::vector<const rules::RuleSet*> All() const {
    std::vector<const rules::RuleSet*> all = rules::BuiltInRuleSets();
    for (const auto& [name, round] : facility_rounds_)
      all.push_back(round.rules.get());
    return all;
  }

  std::string Names() const {
    std::vector<std::string> names;
    for (const rules::RuleSet* round : All())
      names.push_back(round->name());
    return absl::StrJoin(names, ", ");
  }

  // Null if there is none.
  RulesRef Find(const std::string& name) const {
    const auto it = facility_rounds_.find(name);
    if (it != facility_rounds_.end()) return it->second.rules;
    return RulesRef(rules::FindRuleSet(name), [](const rules::RuleSet*) {});  // it is for ever
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
    facts.init_limit_ms = round.data().init_limit_ms;
    facts.scoring = round.scoring();
    for (const auto& [name, value] : benchmark.fixed)
      facts.fixed[name] = DumpJson(value);
    const auto it = facility_rounds_.find(round.name());
    if (it != facility_rounds_.end()) facts.rule_set_toml = it->second.toml;
    return facts;
  }

  // The rules that accepted the submission, whatever its round has come to since. An import of a
  // round that was not known has no digest of ours.
  absl::StatusOr<RulesRef> RulesOf(const core::Submission& submission) const {
    const std::string& digest = submission.rules.digest;
    RulesRef round = Find(submission.spec.round);
    if (round != nullptr && (digest.empty() || round->IsKnownAs(digest))) return round;
    const auto kept = kept_.find(digest);
    if (kept != kept_.end()) return kept->second;
    if (!submission.rules.rule_set_toml.empty()) {
      absl::StatusOr<std::unique_ptr<const rules::RuleSet>> own =
          rules::ParseFacilityRound(submission.rules.rule_set_toml, submission.spec.round);
      if (own.ok() && (*own)->IsKnownAs(digest)) return RulesRef(*std::move(own));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        submission.id.ToString(), " is judged by the rules of ", submission.spec.round,
        " with digest ", digest, ", which are not kept here; ",
        round == nullptr ? "there is no round of that name"
                         : absl::StrCat("the round's digest is ", round->digest(), " now"),
        "; restore the database with its table rule_packs, or the round's file as it was"));
  }

  std::map<std::string, Round> facility_rounds_;
  std::map<std::string, RulesRef> kept_;  // by digest
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
