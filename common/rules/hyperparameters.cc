#include "common/rules/hyperparameters.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/condition.h"
#include "common/rules/extensions.h"
#include "common/rules/ranks.h"

namespace assay::rules {
namespace {

constexpr char kSection[] = "HPC rules, Hyperparameters";
constexpr char kRunsSection[] = "HPC rules, Run Results";

// How the work is done, as the number of ranks: it changes no result, so every division is free.
bool IsOfImplementation(absl::string_view key) {
  return key == kSpatialGridKey || key == "checkpoint_interval_steps" ||
         key == "local_eval_batch_size" || key == kGradientBucketKey || key == kDeviceCacheKey ||
         key == kMemoryLimitKey;
}

std::string BenchmarkNames(const RuleSet& rules) {
  return absl::StrJoin(rules.data().benchmarks, ", ",
                       [](std::string* out, const Benchmark& b) { out->append(b.name); });
}

Finding UnknownBenchmark(const RuleSet& rules, absl::string_view benchmark) {
  const KeyRule* rule = rules.FindRuleById("R-SUB-005");
  return {.rule_id = "R-SUB-005",
          .error_class = "check_failed:submission_benchmark",
          .key = "submission_benchmark",
          .expected = absl::StrCat("one of ", BenchmarkNames(rules)),
          .found = DumpJson(benchmark),
          .section = rule == nullptr ? "" : rule->section,
          .remedy = absl::StrCat("name a benchmark of ", rules.name())};
}

Finding UnknownDivision(absl::string_view division) {
  return {.rule_id = "R-SUB-003",
          .error_class = "check_failed:submission_division",
          .key = "submission_division",
          .expected = "one of \"closed\", \"open\"",
          .found = DumpJson(division),
          .section = "HPC rules, Submission",
          .remedy = "name the division"};
}

// What `rule` says against `value`, if anything.
void Judge(const KeyRule& rule, const JsonValue& value, Severity severity,
           std::vector<Finding>* findings) {
  for (const Condition& condition : rule.checks) {
    const Truth truth = EvaluateValue(condition, value);
    if (truth == Truth::kTrue) continue;
    findings->push_back({.rule_id = rule.id,
                         .severity = severity,
                         .error_class = absl::StrCat(
                             truth == Truth::kError ? "check_error:" : "check_failed:", rule.key),
                         .key = rule.key,
                         .expected = Describe(condition),
                         .found = DumpJson(value),
                         .section = rule.section,
                         .remedy = rule.remedy});
    return;
  }
}

// Judges every value by the rules of the log check about `topic`; returns the names it knows.
std::set<std::string> JudgeByLogRules(const RuleSet& rules, const std::vector<std::string>& configs,
                                      const Hyperparameters& values, Topic topic,
                                      std::vector<Finding>* findings) {
  std::map<std::string, const KeyRule*> last;  // a later config's rule replaces an earlier one's
  for (const std::string& name : configs) {
    const int config = rules.ConfigNumber(name);
    if (config < 0) continue;
    for (const KeyRule& rule : rules.data().configs[static_cast<size_t>(config)].rules) {
      last[rule.key] = &rule;
    }
  }
  std::set<std::string> known;
  for (const auto& [key, rule] : last) {
    known.insert(key);
    const auto value = values.find(key);
    if (value != values.end() && rule->topic == topic) {
      Judge(*rule, value->second, Severity::kError, findings);
    }
  }
  return known;
}

// The document's own demands. Where the checker judges the key too, the checker decides, so the
// document only warns.
void JudgeByDocument(const Benchmark& benchmark, const Hyperparameters& values,
                     std::set<std::string>* known, std::vector<Finding>* findings) {
  std::set<std::string> document_keys;
  for (const KeyRule& rule : benchmark.document_rules) {
    document_keys.insert(rule.key);
    const auto value = values.find(rule.key);
    if (value == values.end()) continue;
    const bool is_checked = known->count(rule.key) > 0;
    Judge(rule, value->second, is_checked ? Severity::kWarning : Severity::kError, findings);
  }
  known->insert(document_keys.begin(), document_keys.end());
}

Finding WrongRunCount(const Benchmark& benchmark, int found, const char* what) {
  return {.rule_id = "R-RUN-001",
          .error_class = "run_count",
          .expected = absl::StrCat(benchmark.runs_required, " ", what, " of ", benchmark.name),
          .found = absl::StrCat(found),
          .section = kRunsSection,
          .remedy = absl::StrCat("submit at least the ", what, " that the round demands")};
}

}  // namespace

std::vector<std::string> HyperparameterConfigs(const RuleSet& rules, absl::string_view benchmark,
                                               absl::string_view division,
                                               const Hyperparameters& values) {
  std::vector<std::string> names = {"common", absl::StrCat(division, "_common"),
                                    absl::StrCat(division, "_", benchmark)};
  const int config = rules.ConfigNumber(names.back());
  if (config < 0) return names;
  for (const KeyRule& rule : rules.data().configs[static_cast<size_t>(config)].rules) {
    const auto value = values.find(rule.key);
    if (value == values.end() || value->second.AsString() == nullptr) continue;
    for (const Effect& effect : rule.effects) {
      if (effect.kind != Effect::Kind::kEnqueue) continue;
      if (effect.only_if && !PythonEquals(value->second, *effect.only_if)) continue;
      std::string text = *value->second.AsString();
      if (effect.lower_case) text = absl::AsciiStrToLower(text);
      names.push_back(absl::StrCat(effect.prefix, text, effect.suffix));
    }
  }
  return names;
}

std::vector<Finding> CheckHyperparameters(const RuleSet& rules, absl::string_view benchmark,
                                          absl::string_view division,
                                          const Hyperparameters& values) {
  const Benchmark* known_benchmark = rules.FindBenchmark(benchmark);
  if (known_benchmark == nullptr) return {UnknownBenchmark(rules, benchmark)};
  if (division != "closed" && division != "open") return {UnknownDivision(division)};

  std::vector<Finding> findings;
  std::set<std::string> known =
      JudgeByLogRules(rules, HyperparameterConfigs(rules, benchmark, division, values), values,
                      Topic::kHyperparameter, &findings);
  if (division == "open") return findings;  // free there
  JudgeByDocument(*known_benchmark, values, &known, &findings);
  for (const auto& [key, value] : values) {
    if (known.count(key) > 0 || IsOfImplementation(key)) continue;
    if (IsExtension(key)) {
      if (std::optional<Finding> finding = CheckExtension(key, value))
        findings.push_back(*std::move(finding));
      continue;
    }
    findings.push_back({.rule_id = "R-HP-000",
                        .severity = Severity::kWarning,
                        .error_class = absl::StrCat("unknown_hyperparameter:", key),
                        .key = key,
                        .expected = absl::StrCat("a hyperparameter of closed ", benchmark),
                        .found = DumpJson(value),
                        .section = kSection,
                        .remedy = "check the spelling; nothing judges this value"});
  }
  return findings;
}

std::vector<Finding> CheckSampleCounts(const RuleSet& rules, absl::string_view benchmark,
                                       absl::string_view division, int64_t train_samples,
                                       int64_t eval_samples) {
  std::vector<Finding> findings;
  const Hyperparameters counts = {{"train_samples", train_samples}, {"eval_samples", eval_samples}};
  JudgeByLogRules(rules, HyperparameterConfigs(rules, benchmark, division, counts), counts,
                  Topic::kData, &findings);
  for (Finding& finding : findings)
    absl::StrAppend(&finding.found, " ", finding.key);
  return findings;
}

std::vector<Finding> CheckRunCount(const RuleSet& rules, absl::string_view benchmark, int runs) {
  const Benchmark* known = rules.FindBenchmark(benchmark);
  if (known == nullptr) return {UnknownBenchmark(rules, benchmark)};
  if (runs == known->runs_required) return {};
  Finding finding = WrongRunCount(*known, runs, "runs");
  if (runs > known->runs_required) {
    finding.rule_id = "R-RUN-002";
    finding.severity = Severity::kWarning;
    finding.remedy = absl::StrCat("none needed: of all runs the ", known->runs_required,
                                  " consecutive ones nearest the median will count");
  }
  return {finding};
}

std::vector<Finding> CheckInstanceCount(const RuleSet& rules, absl::string_view benchmark,
                                        int instances) {
  const Benchmark* known = rules.FindBenchmark(benchmark);
  if (known == nullptr) return {UnknownBenchmark(rules, benchmark)};
  // Rounds whose packages tell the two metrics apart have both.
  if (rules.data().is_mlperf && !rules.data().scaling_folders)
    return {{.rule_id = "R-RUN-003",
             .error_class = "metric",
             .key = "metric",
             .expected = "time_to_solution",
             .found = absl::StrCat("throughput in ", rules.name()),
             .section = kRunsSection,
             .remedy = "choose a later round, or submit for time to solution"}};
  if (instances >= known->runs_required) return {};
  return {WrongRunCount(*known, instances, "instances")};
}

}  // namespace assay::rules
