#include "common/rules/ruleset.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/fact_collector.h"
#include "common/sha256.h"

namespace assay::rules {
namespace {

absl::string_view OccurrenceName(Occurrence occurrence) {
  switch (occurrence) {
    case Occurrence::kOptional:
      return "optional";
    case Occurrence::kExactlyOne:
      return "exactly_one";
    case Occurrence::kAtLeastOne:
      return "at_least_one";
    case Occurrence::kAtLeastOneOr:
      return "at_least_one_or";
  }
  return "";
}

std::string InWords(const std::vector<Condition>& conditions) {
  return absl::StrJoin(conditions, " and ", [](std::string* out, const Condition& condition) {
    absl::StrAppend(out, Describe(condition));
  });
}

void AppendEffect(const Effect& effect, std::string* out) {
  switch (effect.kind) {
    case Effect::Kind::kSetFlag:
      absl::StrAppend(out, " set:", static_cast<int>(effect.flag));
      return;
    case Effect::Kind::kNoteInitStart:
      absl::StrAppend(out, " note_init_start");
      return;
    case Effect::Kind::kEnqueue:
      absl::StrAppend(out, " enqueue:", effect.prefix, effect.lower_case ? "<lower>" : "<value>",
                      effect.suffix);
      if (effect.only_if) absl::StrAppend(out, " if ", DumpJson(*effect.only_if));
      return;
  }
}

void AppendRule(absl::string_view where, const KeyRule& rule, std::string* out) {
  absl::StrAppend(out, where, " ", rule.id, " ", rule.key, " ", OccurrenceName(rule.occurrence),
                  "(", absl::StrJoin(rule.alternatives, ","), ") check[", InWords(rule.checks),
                  "] some_line[", InWords(rule.some_line), "]");
  for (const Effect& effect : rule.effects)
    AppendEffect(effect, out);
  absl::StrAppend(out, " topic:", static_cast<int>(rule.topic), "\n");
}

}  // namespace

std::string CanonicalText(const RuleSetData& data) {
  std::string out = absl::StrCat("ruleset ", data.name, " mlperf:", data.is_mlperf,
                                 " staging_on_the_clock:", data.staging_on_the_clock,
                                 " init_limit_ms:", data.init_limit_ms,
                                 " failed_runs_allowed:", data.failed_runs_allowed, "\n");
  for (const Benchmark& benchmark : data.benchmarks) {
    absl::StrAppend(&out, "benchmark ", benchmark.name, " runs:", benchmark.runs_required, " ",
                    benchmark.quality_key,
                    benchmark.lower_is_better ? " <= " : " >= ", PythonFloatRepr(benchmark.target),
                    "\n");
    for (const KeyRule& rule : benchmark.document_rules)
      AppendRule("document", rule, &out);
  }
  for (const Config& config : data.configs) {
    absl::StrAppend(&out, "config ", config.name, " flags:", config.has_flags, "\n");
    for (const KeyRule& rule : config.rules)
      AppendRule("rule", rule, &out);
  }
  return out;
}

std::string Expectation(const KeyRule& rule) {
  std::vector<std::string> parts;
  if (!rule.checks.empty()) parts.push_back(InWords(rule.checks));
  if (!rule.some_line.empty()) {
    parts.push_back(absl::StrCat("some line ", InWords(rule.some_line)));
  }
  return parts.empty() ? "present" : absl::StrJoin(parts, "; ");
}

RuleSet::RuleSet(RuleSetData data)
    : data_(std::move(data)), digest_(Sha256Hex(CanonicalText(data_))) {
  const auto number = [&](absl::string_view key) {
    return key_numbers_.try_emplace(std::string(key), key_count()).first->second;
  };
  for (const absl::string_view key : kFactKeys)
    number(key);  // first: FactKey is their number
  for (const Config& config : data_.configs) {
    for (const KeyRule& rule : config.rules) {
      number(rule.key);
      for (const std::string& key : rule.alternatives)
        number(key);
    }
  }
  const auto count = static_cast<size_t>(key_count());
  for (const Config& config : data_.configs) {
    rules_.emplace_back(count, nullptr);
    // Of two rules for a key the later wins.
    for (const KeyRule& rule : config.rules) {
      rules_.back()[static_cast<size_t>(KeyNumber(rule.key))] = &rule;
    }
  }
}

int RuleSet::ConfigNumber(absl::string_view name) const {
  for (size_t i = 0; i < data_.configs.size(); ++i) {
    if (data_.configs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

const Benchmark* RuleSet::FindBenchmark(absl::string_view name) const {
  for (const Benchmark& benchmark : data_.benchmarks) {
    if (benchmark.name == name) return &benchmark;
  }
  return nullptr;
}

const KeyRule* RuleSet::FindRuleById(absl::string_view id) const {
  const auto find = [&](const std::vector<KeyRule>& rules) -> const KeyRule* {
    const auto found = std::find_if(rules.begin(), rules.end(),
                                    [&](const KeyRule& rule) { return rule.id == id; });
    return found == rules.end() ? nullptr : &*found;
  };
  for (const Config& config : data_.configs) {
    if (const KeyRule* rule = find(config.rules)) return rule;
  }
  for (const Benchmark& benchmark : data_.benchmarks) {
    if (const KeyRule* rule = find(benchmark.document_rules)) return rule;
  }
  return nullptr;
}

}  // namespace assay::rules
