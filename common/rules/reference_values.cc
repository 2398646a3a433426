#include "common/rules/reference_values.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/json_reader.h"
#include "common/mllog.h"

namespace assay::rules {
namespace {

// Values that a rule fixes are the reference's.
void AddFixedValues(const RuleSet& rules, absl::string_view benchmark, Hyperparameters* values) {
  const int config = rules.ConfigNumber(absl::StrCat("closed_", benchmark));
  if (config < 0) return;
  for (const KeyRule& rule : rules.data().configs[static_cast<size_t>(config)].rules) {
    if (rule.topic != Topic::kHyperparameter || rule.checks.size() != 1) continue;
    const Condition& check = rule.checks.front();
    if (check.kind != Condition::Kind::kOneOf || check.operands.size() != 1) continue;
    values->emplace(rule.key, check.operands.front());
  }
}

// Of the benchmark's closed configs, whatever optimizer or schedule, of the document and of the
// reference.
std::set<std::string> KnownKeys(const RuleSet& rules, absl::string_view benchmark) {
  std::set<std::string> keys;
  const auto add = [&](const KeyRule& rule) {
    if (rule.topic == Topic::kHyperparameter) keys.insert(rule.key);
  };
  for (const Config& config : rules.data().configs)
    if (absl::StartsWith(config.name, absl::StrCat("closed_", benchmark)))
      for (const KeyRule& rule : config.rules)
        add(rule);
  if (const Benchmark* known = rules.FindBenchmark(benchmark); known != nullptr)
    for (const KeyRule& rule : known->document_rules)
      add(rule);
  for (const auto& [key, value] : ReferenceHyperparameters(rules, benchmark))
    keys.insert(key);
  return keys;
}

struct Allowed {
  std::string text;
  std::string rule_id;
};

// What rules say of each key; a later rule of the same key adds to it.
void AddRule(const KeyRule& rule, std::map<std::string, Allowed>* allowed) {
  if (rule.topic != Topic::kHyperparameter) return;
  Allowed& entry = (*allowed)[rule.key];
  if (entry.rule_id.empty()) entry.rule_id = rule.id;
  std::vector<std::string> demands;
  if (!entry.text.empty()) demands.push_back(entry.text);
  for (const Condition& check : rule.checks)
    demands.push_back(Describe(check));
  entry.text = absl::StrJoin(demands, ", ");
}

std::map<std::string, Allowed> AllowedValues(const RuleSet& rules, absl::string_view benchmark,
                                             absl::string_view division,
                                             const Hyperparameters& values) {
  std::map<std::string, Allowed> allowed;
  for (const std::string& name : HyperparameterConfigs(rules, benchmark, division, values)) {
    const int config = rules.ConfigNumber(name);
    if (config < 0) continue;
    for (const KeyRule& rule : rules.data().configs[static_cast<size_t>(config)].rules)
      AddRule(rule, &allowed);
  }
  const Benchmark* known = rules.FindBenchmark(benchmark);
  if (known == nullptr || division != "closed") return allowed;
  for (const KeyRule& rule : known->document_rules)
    AddRule(rule, &allowed);
  return allowed;
}

// Keys with an error, and those that no rule knows.
struct Judgement {
  std::set<std::string> refused, unknown;
};

Judgement JudgementOf(const RuleSet& rules, absl::string_view benchmark, absl::string_view division,
                      const Hyperparameters& values) {
  Judgement judgement;
  for (const Finding& finding : CheckHyperparameters(rules, benchmark, division, values)) {
    if (finding.severity == Severity::kError) judgement.refused.insert(finding.key);
    if (absl::StartsWith(finding.error_class, "unknown_hyperparameter:"))
      judgement.unknown.insert(finding.key);
  }
  return judgement;
}

}  // namespace

Hyperparameters ReferenceHyperparameters(const RuleSet& rules, absl::string_view benchmark) {
  Hyperparameters values;
  if (const Benchmark* known = rules.FindBenchmark(benchmark); known != nullptr)
    values.insert(known->reference_values.begin(), known->reference_values.end());
  AddFixedValues(rules, benchmark, &values);
  return values;
}

Hyperparameters LoggedHyperparameters(absl::string_view log, const RuleSet& rules,
                                      absl::string_view benchmark) {
  const std::set<std::string> known = KnownKeys(rules, benchmark);
  Hyperparameters values;
  MllogLines lines(log);
  std::string storage;
  for (absl::string_view text; lines.Next(&text);) {
    const MllogLine line = ReadMllogLine(text);
    if (line.outcome == MllogOutcome::kCrash) break;
    if (line.outcome != MllogOutcome::kRecord) continue;
    const std::string key(MllogKey(line, &storage));
    if (known.count(key) > 0) values.emplace(key, BuildJson(line.value_json));
  }
  return values;
}

absl::string_view StandingName(HyperparameterRow::Standing standing) {
  switch (standing) {
    case HyperparameterRow::Standing::kSame:
      return "same";
    case HyperparameterRow::Standing::kTuned:
      return "tuned";
    case HyperparameterRow::Standing::kRefused:
      return "refused";
    case HyperparameterRow::Standing::kUnknown:
      return "unknown";
    case HyperparameterRow::Standing::kNotGiven:
      return "not given";
  }
  return "";
}

std::vector<HyperparameterRow> CompareWithReference(const RuleSet& rules,
                                                    absl::string_view benchmark,
                                                    absl::string_view division,
                                                    const Hyperparameters& values) {
  using Standing = HyperparameterRow::Standing;
  const Hyperparameters reference = ReferenceHyperparameters(rules, benchmark);
  // Rules that depend on a choice (LAMB, multistep) follow the reference where none is made.
  Hyperparameters chosen = values;
  chosen.insert(reference.begin(), reference.end());
  const std::map<std::string, Allowed> allowed = AllowedValues(rules, benchmark, division, chosen);
  const Judgement judgement = JudgementOf(rules, benchmark, division, values);
  std::map<std::string, HyperparameterRow> rows;
  for (const auto& [key, value] : reference)
    rows[key].reference = value;
  for (const auto& [key, value] : values)
    rows[key].value = value;
  for (const auto& [key, entry] : allowed) {
    rows[key].allowed = entry.text;
    rows[key].rule_id = entry.rule_id;
  }
  std::vector<HyperparameterRow> result;
  for (auto& [key, row] : rows) {
    row.key = key;
    if (!row.value) {
      row.standing = Standing::kNotGiven;
    } else if (judgement.refused.count(key) > 0) {
      row.standing = Standing::kRefused;
    } else if (row.reference && PythonEquals(*row.reference, *row.value)) {
      row.standing = Standing::kSame;
    } else if (judgement.unknown.count(key) > 0) {
      row.standing = Standing::kUnknown;
    } else {
      row.standing = Standing::kTuned;
    }
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace assay::rules
