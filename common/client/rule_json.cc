#include "common/client/rule_json.h"

#include <array>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

#include "assay/v1/admin_service.pb.h"

#include "common/client/resource_json.h"
#include "common/json_reader.h"
#include "common/json_value.h"
#include "common/package/findings.h"
#include "common/rules/arrivals.h"
#include "common/rules/borrowing.h"
#include "common/rules/extensions.h"
#include "common/rules/fleet_rules.h"
#include "common/rules/log_rules.h"
#include "common/rules/pack_names.h"
#include "common/rules/program_log.h"
#include "common/rules/programs.h"
#include "common/rules/ranks.h"
#include "common/rules/registry.h"
#include "common/rules/spec_rules.h"
#include "common/rules/trainer_settings.h"

namespace assay::client {
namespace {

// With what the round fixes ("kernel_size=3") and where the reference's convergence is known.
Json BenchmarkJson(const rules::Benchmark& benchmark) {
  Json fixed = Json::array();
  for (const auto& [key, value] : benchmark.fixed)
    fixed.push_back(absl::StrCat(key, "=", DumpJson(value)));
  Json batch_sizes = Json::array();
  for (const rules::ReferenceRecord& record : benchmark.reference_points)
    batch_sizes.push_back(record.batch_size);
  return {{"id", benchmark.name},
          {"runs", benchmark.runs_required},
          {"quality_key", benchmark.quality_key},
          {"target", benchmark.target},
          {"better", benchmark.lower_is_better ? "lower" : "higher"},
          {"fixed", std::move(fixed)},
          {"reference_batch_sizes", std::move(batch_sizes)}};
}

// A rule as it stands in one round and config.
struct RulePlace {
  std::string round;
  std::string config;
  const rules::KeyRule* rule;
};

std::vector<RulePlace> PlacesOf(const std::string& id) {
  std::vector<RulePlace> places;
  for (const rules::RuleSet* rule_set : rules::BuiltInRuleSets()) {
    for (const rules::Config& config : rule_set->data().configs)
      for (const rules::KeyRule& rule : config.rules)
        if (rule.id == id) places.push_back({rule_set->name(), config.name, &rule});
    for (const rules::Benchmark& benchmark : rule_set->data().benchmarks)
      for (const rules::KeyRule& rule : benchmark.document_rules)
        if (rule.id == id)
          places.push_back({rule_set->name(), absl::StrCat(benchmark.name, " (document)"), &rule});
  }
  return places;
}

std::array<std::span<const rules::TextRule>, 10> TextRules() {
  return {rules::LogRules(),     rules::BorrowingRules(), rules::ExtensionRules(),
          rules::RankRules(),    rules::ProgramRules(),   rules::ProgramLogRules(),
          rules::ArrivalRules(), rules::FleetRules(),     rules::SettingRules(),
          rules::SpecRules()};
}

// A rule about packages, which is the same in all rounds; null if `id` is none.
Json PackageRuleJson(const std::string& id) {
  for (const package::PackageRule& rule : package::PackageRules()) {
    if (rule.id != id) continue;
    return {{"id", id},
            {"severity", std::string(rules::SeverityName(rule.severity))},
            {"expected", rule.expected},
            {"section", rule.section},
            {"remedy", rule.remedy}};
  }
  return nullptr;
}

// A rule that every round has; null if `id` is none.
Json TextRuleJson(const std::string& id) {
  for (const std::span<const rules::TextRule>& table : TextRules()) {
    for (const rules::TextRule& rule : table) {
      if (rule.id != id) continue;
      Json json = {{"id", id}};
      if (*rule.key != '\0') json["key"] = rule.key;
      json["expected"] = rule.expected;
      json["section"] = rule.section;
      json["remedy"] = rule.remedy;
      return json;
    }
  }
  return nullptr;
}

// A rule about a key, with what each round and config makes of it; null if `id` is none.
Json KeyRuleJson(const std::string& id) {
  const std::vector<RulePlace> places = PlacesOf(id);
  if (places.empty()) return nullptr;
  const rules::KeyRule& newest = *places.back().rule;
  Json json = {{"id", id}, {"key", newest.key}, {"expected", rules::Demand(newest)}};
  if (!newest.section.empty()) json["section"] = newest.section;
  if (!newest.remedy.empty()) json["remedy"] = newest.remedy;
  json["rounds"] = Json::array();
  for (const RulePlace& place : places)
    json["rounds"].push_back({{"round", place.round},
                              {"config", place.config},
                              {"expected", rules::Demand(*place.rule)}});
  return json;
}

}  // namespace

Json RuleSetJson(const rules::RuleSet& rule_set) {
  v1::Round round;
  round.set_name(rule_set.name());
  round.set_digest(rule_set.digest());
  round.set_is_mlperf_result(rule_set.data().is_mlperf);
  round.set_label(rule_set.data().label);
  for (const rules::Benchmark& benchmark : rule_set.data().benchmarks)
    round.add_benchmarks(benchmark.name);
  return RoundJson(round);
}

Json RoundDetailsJson(const rules::RuleSet& rule_set) {
  Json json = RuleSetJson(rule_set);
  json["init_limit_ms"] = rule_set.data().init_limit_ms;
  json["is_staging_timed"] = rule_set.data().staging_on_the_clock;
  json["counts"] = std::string(rules::NameOf(rule_set.scoring().counts));
  json["failed_runs_allowed"] = rule_set.scoring().failed_runs_allowed;
  for (const auto& [key, text] : {std::pair("official_round", &rule_set.data().official_round),
                                  std::pair("paper", &rule_set.data().paper)})
    if (!text->empty()) json[key] = *text;
  json["benchmark_details"] = Json::array();
  for (const rules::Benchmark& benchmark : rule_set.data().benchmarks)
    json["benchmark_details"].push_back(BenchmarkJson(benchmark));
  json["rules"] = Json::array();
  for (const rules::Config& config : rule_set.data().configs)
    for (const rules::KeyRule& rule : config.rules)
      json["rules"].push_back({{"id", rule.id},
                               {"key", rule.key},
                               {"config", config.name},
                               {"expected", rules::Demand(rule)},
                               {"section", rule.section},
                               {"remedy", rule.remedy}});
  return json;
}

std::vector<std::string> AllRuleIds() {
  std::set<std::string> ids;
  for (const std::span<const rules::TextRule>& table : TextRules())
    for (const rules::TextRule& rule : table)
      ids.insert(rule.id);
  for (const rules::RuleSet* rule_set : rules::BuiltInRuleSets()) {
    for (const rules::Config& config : rule_set->data().configs)
      for (const rules::KeyRule& rule : config.rules)
        ids.insert(rule.id);
    for (const rules::Benchmark& benchmark : rule_set->data().benchmarks)
      for (const rules::KeyRule& rule : benchmark.document_rules)
        ids.insert(rule.id);
  }
  for (const package::PackageRule& rule : package::PackageRules())
    ids.insert(rule.id);
  return {ids.begin(), ids.end()};
}

Json FindRuleJson(const std::string& id) {
  Json json = TextRuleJson(id);
  if (json.is_null()) json = PackageRuleJson(id);
  if (json.is_null()) json = KeyRuleJson(id);
  return json;
}

}  // namespace assay::client
