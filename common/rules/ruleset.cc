#include "common/rules/ruleset.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/fact_collector.h"
#include "common/rules/pack.h"
#include "common/sha256.h"

namespace assay::rules {
namespace {

bool LooksAtMetadata(const KeyRule& rule) {
  const auto looks = [](const Condition& condition) {
    return condition.kind == Condition::Kind::kMetadataHas ||
           condition.kind == Condition::Kind::kMetadataGreater;
  };
  return std::any_of(rule.checks.begin(), rule.checks.end(), looks) ||
         std::any_of(rule.some_line.begin(), rule.some_line.end(), looks);
}

}  // namespace

std::string DescribeAll(const std::vector<Condition>& conditions) {
  return absl::StrJoin(conditions, " and ", [](std::string* out, const Condition& condition) {
    absl::StrAppend(out, Describe(condition));
  });
}

std::string Expectation(const KeyRule& rule) {
  std::vector<std::string> parts;
  if (!rule.checks.empty()) parts.push_back(DescribeAll(rule.checks));
  if (!rule.some_line.empty()) {
    parts.push_back(absl::StrCat("on some line ", DescribeAll(rule.some_line)));
  }
  return parts.empty() ? "present" : absl::StrJoin(parts, "; ");
}

std::string Demand(const KeyRule& rule) {
  std::string often;
  switch (rule.occurrence) {
    case Occurrence::kOptional:
      often = "if logged";
      break;
    case Occurrence::kExactlyOne:
      often = "once";
      break;
    case Occurrence::kAtLeastOne:
      often = "at least once";
      break;
    case Occurrence::kAtLeastOneOr:
      often = absl::StrCat("at least once, or ", absl::StrJoin(rule.alternatives, " or "));
      break;
  }
  if (rule.checks.empty() && rule.some_line.empty()) return often;
  return absl::StrCat(often, ": ", Expectation(rule));
}

RuleSet::RuleSet(RuleSetData data)
    : data_(std::move(data)),
      digest_(Sha256Hex(CanonicalText(data_))),
      former_digest_(Sha256Hex(FormerCanonicalText(data_))) {
  const auto number = [&](absl::string_view key) {
    return key_numbers_.try_emplace(std::string(key), key_count()).first->second;
  };
  for (const absl::string_view key : kFactKeys)
    number(key);  // first: FactKey is their number
  for (const Benchmark& benchmark : data_.benchmarks)
    number(benchmark.quality_key);
  for (const Config& config : data_.configs) {
    for (const KeyRule& rule : config.rules) {
      number(rule.key);
      for (const std::string& key : rule.alternatives)
        number(key);
    }
  }
  Index();
}

void RuleSet::Index() {
  const auto count = static_cast<size_t>(key_count());
  configs_with_.resize(count);
  uses_metadata_.resize(count);
  uses_metadata_[static_cast<size_t>(FactKey::kRunStop)] = true;
  for (const Config& config : data_.configs) {
    rules_.emplace_back(count, nullptr);
    // Of two rules for a key the later wins.
    for (const KeyRule& rule : config.rules)
      rules_.back()[static_cast<size_t>(KeyNumber(rule.key))] = &rule;
    for (size_t key = 0; key < count; ++key) {
      const KeyRule* rule = rules_.back()[key];
      if (rule == nullptr) continue;
      configs_with_[key].push_back(static_cast<int>(rules_.size()) - 1);
      if (LooksAtMetadata(*rule)) uses_metadata_[key] = true;
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
