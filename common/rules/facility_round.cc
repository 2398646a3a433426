#include "common/rules/facility_round.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "common/rules/condition.h"
#include "common/rules/pack_names.h"
#include "common/rules/registry.h"
#include "common/rules/round_file.h"
#include "common/status.h"
#include "common/toml.h"

namespace assay::rules {
namespace {

using Kind = Condition::Kind;

constexpr int64_t kRunsMax = 1000;
constexpr int64_t kInitLimitMaxS = 24 * 60 * 60;

// One file being read: knows its name for messages.
class RoundReader {
 public:
  explicit RoundReader(absl::string_view source) : source_(source) {}

  absl::StatusOr<RuleSetData> Read(const toml::table& file) const;
  absl::Status Error(const toml::source_region& where, absl::string_view message) const {
    return absl::InvalidArgumentError(
        absl::StrCat(source_, ":", where.begin.line, ":", where.begin.column, ": ", message));
  }

 private:
  absl::Status CheckNames(const toml::table& table, const std::vector<std::string>& known) const;
  absl::StatusOr<const toml::table*> Table(const toml::table& file, const char* name) const;
  template <typename T>
  absl::StatusOr<std::optional<T>> Optional(const toml::table& table, const char* name,
                                            const char* type) const;
  template <typename T>
  absl::StatusOr<T> Required(const toml::table& table, const char* name, const char* type) const;
  absl::StatusOr<int64_t> Count(const toml::table& table, const char* name, int64_t max) const;

  absl::Status ReadRound(const toml::table& table, RuleSetData* data) const;
  absl::Status ReadAssurance(const toml::table& table, RuleSetData* data) const;
  absl::StatusOr<Benchmark> DeclareBenchmark(const toml::table& table, const std::string& name,
                                             const RuleSetData& base) const;
  absl::StatusOr<Benchmark> FindBenchmark(const toml::table& table, const RuleSetData& base) const;
  absl::Status ReadBenchmark(const toml::table& table, RuleSetData* data) const;
  absl::Status ReadRules(const toml::table& file, RuleSetData* data) const;
  absl::StatusOr<KeyRule> ReadRule(const toml::table& table) const;
  absl::Status ReadIdentity(const toml::table& table, KeyRule* rule) const;
  absl::Status ReadConditions(const toml::table& table, KeyRule* rule) const;
  absl::StatusOr<JsonValue> Value(const toml::node& node) const;
  absl::StatusOr<std::vector<std::string>> Divisions(const toml::table& table) const;

  std::string source_;
};

absl::Status RoundReader::CheckNames(const toml::table& table,
                                     const std::vector<std::string>& known) const {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Error(key.source(), absl::StrCat("unknown key \"", name, "\"; known are ",
                                            absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<const toml::table*> RoundReader::Table(const toml::table& file,
                                                      const char* name) const {
  const toml::node* node = file.get(name);
  if (node == nullptr || !node->is_table()) {
    return Error(node == nullptr ? file.source() : node->source(),
                 absl::StrCat("a table [", name, "] is required"));
  }
  return node->as_table();
}

template <typename T>
absl::StatusOr<std::optional<T>> RoundReader::Optional(const toml::table& table, const char* name,
                                                       const char* type) const {
  const toml::node* node = table.get(name);
  if (node == nullptr) return std::optional<T>();
  const std::optional<T> value = node->value<T>();
  if (!value) return Error(node->source(), absl::StrCat("\"", name, "\" must be ", type));
  return value;
}

template <typename T>
absl::StatusOr<T> RoundReader::Required(const toml::table& table, const char* name,
                                        const char* type) const {
  ASSIGN_OR_RETURN(std::optional<T> value, Optional<T>(table, name, type));
  if (!value) return Error(table.source(), absl::StrCat("\"", name, "\" is required"));
  return *std::move(value);
}

absl::StatusOr<int64_t> RoundReader::Count(const toml::table& table, const char* name,
                                           int64_t max) const {
  ASSIGN_OR_RETURN(const int64_t count, Required<int64_t>(table, name, "an integer"));
  if (count >= 1 && count <= max) return count;
  return Error(table.get(name)->source(),
               absl::StrCat("\"", name, "\" must be from 1 to ", max, "; it is ", count));
}

absl::StatusOr<RuleSetData> RoundReader::Read(const toml::table& file) const {
  RETURN_IF_ERROR(CheckNames(file, RoundFileTables()));
  ASSIGN_OR_RETURN(const toml::table* round, Table(file, "round"));
  ASSIGN_OR_RETURN(const toml::table* benchmark, Table(file, "benchmark"));
  RuleSetData data;
  RETURN_IF_ERROR(ReadRound(*round, &data));
  RETURN_IF_ERROR(ReadBenchmark(*benchmark, &data));
  RETURN_IF_ERROR(ReadRules(file, &data));
  return data;
}

// Lower-case letters, digits and `others`.
bool IsPlain(absl::string_view name, absl::string_view others) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || absl::StrContains(others, c);
  });
}

bool IsRoundName(const std::string& name) {
  return IsPlain(name, "-.") && !absl::StartsWith(name, "hpc");
}

// Gives every time limit of initialisation a new value.
void SetInitLimit(int64_t limit_ms, RuleSetData* data) {
  data->init_limit_ms = limit_ms;
  for (Config& config : data->configs) {
    for (KeyRule& rule : config.rules) {
      for (Condition& condition : rule.checks) {
        if (condition.kind == Condition::Kind::kInitWithin) condition.operands = {limit_ms};
      }
    }
  }
}

absl::Status RoundReader::ReadAssurance(const toml::table& table, RuleSetData* data) const {
  constexpr char kName[] = "first_touch_assurance";
  ASSIGN_OR_RETURN(const auto text, Optional<std::string>(table, kName, "text"));
  if (!text.has_value()) return absl::OkStatus();
  const std::optional<Assurance> assurance = FromName<Assurance>(*text);
  if (!assurance.has_value())
    return Error(table.get(kName)->source(), absl::StrCat("\"", kName,
                                                          "\" must be self-reported, observed or "
                                                          "proven; it is \"",
                                                          *text, "\""));
  data->first_touch_assurance = *assurance;
  return absl::OkStatus();
}

absl::Status RoundReader::ReadRound(const toml::table& table, RuleSetData* data) const {
  RETURN_IF_ERROR(CheckNames(table, RoundFileKeysOf("round")));
  ASSIGN_OR_RETURN(const std::string name, Required<std::string>(table, "name", "text"));
  ASSIGN_OR_RETURN(const std::string base, Required<std::string>(table, "base", "text"));
  ASSIGN_OR_RETURN(const std::string label, Required<std::string>(table, "label", "text"));
  if (!IsRoundName(name)) {
    return Error(
        table.get("name")->source(),
        "\"name\" must be lower-case letters, digits, '-' and '.', not beginning with hpc");
  }
  const RuleSet* rules = FindRuleSet(base);
  if (rules == nullptr) {
    return Error(table.get("base")->source(), absl::StrCat("unknown base round \"", base, "\""));
  }
  *data = rules->data();
  data->name = name;
  data->label = label;
  data->is_mlperf = false;
  data->official_round.clear();
  data->paper.clear();
  ASSIGN_OR_RETURN(const std::optional<bool> is_from_storage,
                   Optional<bool>(table, "first_pass_from_storage", "true or false"));
  data->first_pass_from_storage = is_from_storage.value_or(data->first_pass_from_storage);
  ASSIGN_OR_RETURN(const std::optional<bool> is_cold,
                   Optional<bool>(table, "data_cold_at_start", "true or false"));
  data->data_cold_at_start = is_cold.value_or(data->data_cold_at_start);
  RETURN_IF_ERROR(ReadAssurance(table, data));
  if (!table.contains("init_limit_s")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t limit_s, Count(table, "init_limit_s", kInitLimitMaxS));
  SetInitLimit(limit_s * 1000, data);
  return absl::OkStatus();
}

bool BelongsTo(const std::string& config, const std::string& benchmark) {
  for (const char* division : {"closed_", "open_"}) {
    const std::string own = division + benchmark;
    if (config == own || absl::StartsWith(config, own + "_")) return true;
  }
  return false;
}

std::vector<Condition> TargetConditions(const Benchmark& benchmark) {
  if (benchmark.lower_is_better) return {Greater(0), AtMost(benchmark.target)};
  if (benchmark.target > 1) return {AtLeast(benchmark.target)};
  return {AtLeast(benchmark.target), AtMost(1)};
}

// Gives both divisions a config for a benchmark that the base does not have. What it demands beside
// the quality is the file's to say.
void AddConfigs(const Benchmark& benchmark, RuleSetData* data) {
  KeyRule quality;
  quality.id = "R-QUA-000";
  quality.key = benchmark.quality_key;
  quality.occurrence = Occurrence::kAtLeastOne;
  quality.checks = {MetadataHas("epoch_num")};
  quality.topic = Topic::kQuality;
  quality.section = "facility round";
  quality.remedy = "train until the target is met; log the quality with epoch_num";
  for (const char* division : {"closed_", "open_"})
    data->configs.push_back({.name = division + benchmark.name, .rules = {quality}});
}

// Leaves of the base only what concerns `benchmark`, with its new target.
void KeepOnly(const Benchmark& benchmark, RuleSetData* data) {
  data->benchmarks = {benchmark};
  std::vector<Config> kept;
  for (Config& config : data->configs) {
    const bool is_common = config.name == "common" || absl::EndsWith(config.name, "_common");
    if (is_common || BelongsTo(config.name, benchmark.name)) kept.push_back(std::move(config));
  }
  data->configs = std::move(kept);
  for (Config& config : data->configs) {
    for (KeyRule& rule : config.rules) {
      if (rule.key == "submission_benchmark") rule.checks = {Equals(benchmark.name)};
      if (rule.topic == Topic::kQuality) rule.some_line = TargetConditions(benchmark);
    }
  }
}

// True if every log has records of the key, for another purpose.
bool IsTaken(const std::string& key, const RuleSetData& base) {
  return std::any_of(base.configs.begin(), base.configs.end(), [&](const Config& config) {
    return (config.name == "common" || absl::EndsWith(config.name, "_common")) &&
           std::any_of(config.rules.begin(), config.rules.end(),
                       [&](const KeyRule& rule) { return rule.key == key; });
  });
}

// A benchmark that the base does not have.
absl::StatusOr<Benchmark> RoundReader::DeclareBenchmark(const toml::table& table,
                                                        const std::string& name,
                                                        const RuleSetData& base) const {
  const toml::source_region& name_at = table.get("name")->source();
  if (IsMlperfBenchmark(name) || (!table.contains("quality_key") && !table.contains("better"))) {
    return Error(name_at, absl::StrCat("the base round has no benchmark \"", name,
                                       IsMlperfBenchmark(name)
                                           ? "\", and it is a name of MLPerf's: choose another"
                                           : "\"; one of its own says its quality_key and better"));
  }
  if (!IsPlain(name, "-_.")) {
    return Error(name_at, "\"name\" must be lower-case letters, digits, '-', '_' and '.'");
  }
  Benchmark benchmark = {.name = name};
  ASSIGN_OR_RETURN(benchmark.quality_key, Required<std::string>(table, "quality_key", "text"));
  if (!IsPlain(benchmark.quality_key, "_") || IsTaken(benchmark.quality_key, base)) {
    return Error(table.get("quality_key")->source(),
                 "\"quality_key\" must be lower-case letters, digits and '_', and a key that logs "
                 "do not have yet");
  }
  ASSIGN_OR_RETURN(const std::string better, Required<std::string>(table, "better", "text"));
  if (better != "lower" && better != "higher") {
    return Error(table.get("better")->source(), "\"better\" must be lower or higher");
  }
  benchmark.lower_is_better = better == "lower";
  return benchmark;
}

// The base's, or one that the file declares.
absl::StatusOr<Benchmark> RoundReader::FindBenchmark(const toml::table& table,
                                                     const RuleSetData& base) const {
  ASSIGN_OR_RETURN(const std::string name, Required<std::string>(table, "name", "text"));
  const auto known = std::find_if(base.benchmarks.begin(), base.benchmarks.end(),
                                  [&](const Benchmark& b) { return b.name == name; });
  if (known == base.benchmarks.end()) return DeclareBenchmark(table, name, base);
  for (const char* own : {"quality_key", "better"}) {
    if (!table.contains(own)) continue;
    return Error(table.get(own)->source(),
                 absl::StrCat("\"", own, "\" of ", name, " is the base round's: leave it out"));
  }
  Benchmark benchmark = *known;
  benchmark.reference_points.clear();  // they are of the base's target
  return benchmark;
}

absl::Status RoundReader::ReadBenchmark(const toml::table& table, RuleSetData* data) const {
  RETURN_IF_ERROR(CheckNames(table, RoundFileKeysOf("benchmark")));
  ASSIGN_OR_RETURN(Benchmark benchmark, FindBenchmark(table, *data));
  ASSIGN_OR_RETURN(const int64_t runs, Count(table, "runs", kRunsMax));
  ASSIGN_OR_RETURN(benchmark.target, Required<double>(table, "target", "a number"));
  if (!std::isfinite(benchmark.target) || benchmark.target <= 0) {
    return Error(table.get("target")->source(), "\"target\" must be a finite number above 0");
  }
  benchmark.runs_required = static_cast<int>(runs);
  if (!IsMlperfBenchmark(benchmark.name)) AddConfigs(benchmark, data);
  KeepOnly(benchmark, data);
  return absl::OkStatus();
}

absl::StatusOr<JsonValue> RoundReader::Value(const toml::node& node) const {
  if (const auto* text = node.as_string()) return JsonValue(text->get());
  if (const auto* integer = node.as_integer()) return JsonValue(integer->get());
  if (const auto* number = node.as_floating_point()) return JsonValue(number->get());
  if (const auto* boolean = node.as_boolean()) return JsonValue(boolean->get());
  return Error(node.source(), "must be text, a number, true or false");
}

absl::Status RoundReader::ReadConditions(const toml::table& table, KeyRule* rule) const {
  const std::pair<const char*, Kind> kinds[] = {{"equals", Kind::kOneOf},
                                                {"above", Kind::kGreater},
                                                {"at_least", Kind::kAtLeast},
                                                {"below", Kind::kLess},
                                                {"at_most", Kind::kAtMost}};
  for (const auto& kind : kinds) {
    const toml::node* node = table.get(kind.first);
    if (node == nullptr) continue;
    ASSIGN_OR_RETURN(JsonValue operand, Value(*node));
    if (kind.second != Kind::kOneOf && !operand.ToDouble()) {
      return Error(node->source(), absl::StrCat("\"", kind.first, "\" must be a number"));
    }
    rule->checks.push_back(Compare(kind.second, std::move(operand)));
  }
  const toml::node* list = table.get("one_of");
  if (list == nullptr) return absl::OkStatus();
  if (!list->is_array() || list->as_array()->empty()) {
    return Error(list->source(), "\"one_of\" must be a list with at least one value");
  }
  std::vector<JsonValue> operands;
  for (const toml::node& element : *list->as_array()) {
    ASSIGN_OR_RETURN(JsonValue operand, Value(element));
    operands.push_back(std::move(operand));
  }
  rule->checks.push_back(OneOf(std::move(operands)));
  return absl::OkStatus();
}

absl::Status RoundReader::ReadIdentity(const toml::table& table, KeyRule* rule) const {
  ASSIGN_OR_RETURN(rule->id, Required<std::string>(table, "id", "text"));
  ASSIGN_OR_RETURN(rule->key, Required<std::string>(table, "key", "text"));
  absl::string_view digits = rule->id;
  if (!absl::ConsumePrefix(&digits, "R-FAC-") || digits.empty() ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) {
    return Error(table.get("id")->source(), "\"id\" must be R-FAC- and digits");
  }
  if (rule->key.empty() || absl::StartsWith(rule->key, "submission_")) {
    return Error(table.get("key")->source(), "\"key\" must be a log key, not a submission_ key");
  }
  ASSIGN_OR_RETURN(const auto occurrence, Optional<std::string>(table, "occurrence", "text"));
  const std::string name = occurrence.value_or("exactly_one");
  if (name == "exactly_one") {
    rule->occurrence = Occurrence::kExactlyOne;
  } else if (name == "at_least_one") {
    rule->occurrence = Occurrence::kAtLeastOne;
  } else if (name != "optional") {
    return Error(table.get("occurrence")->source(),
                 "\"occurrence\" must be exactly_one, at_least_one or optional");
  }
  return absl::OkStatus();
}

absl::StatusOr<KeyRule> RoundReader::ReadRule(const toml::table& table) const {
  RETURN_IF_ERROR(CheckNames(table, RoundFileKeysOf("rule")));
  KeyRule rule;
  RETURN_IF_ERROR(ReadIdentity(table, &rule));
  RETURN_IF_ERROR(ReadConditions(table, &rule));
  ASSIGN_OR_RETURN(const auto is_hyperparameter,
                   Optional<bool>(table, "hyperparameter", "true or false"));
  ASSIGN_OR_RETURN(const auto section, Optional<std::string>(table, "section", "text"));
  ASSIGN_OR_RETURN(const auto remedy, Optional<std::string>(table, "remedy", "text"));
  rule.topic = is_hyperparameter.value_or(false) ? Topic::kHyperparameter : Topic::kData;
  rule.section = section.value_or("facility round");
  rule.remedy = remedy.value_or(absl::StrCat("use the ", rule.key, " that the round demands"));
  return rule;
}

absl::StatusOr<std::vector<std::string>> RoundReader::Divisions(const toml::table& table) const {
  const toml::node* node = table.get("divisions");
  if (node == nullptr) return std::vector<std::string>{"closed", "open"};
  std::vector<std::string> divisions;
  if (const toml::array* list = node->as_array()) {
    for (const toml::node& element : *list) {
      divisions.push_back(element.value<std::string>().value_or(""));
    }
  }
  const bool is_valid =
      !divisions.empty() && std::all_of(divisions.begin(), divisions.end(), [](const auto& name) {
        return name == "closed" || name == "open";
      });
  if (!is_valid) return Error(node->source(), "\"divisions\" must list closed, open or both");
  return divisions;
}

// Puts `rule` in the place of the division's own rule for the key, or at the end of its benchmark's
// config.
void PutRule(const KeyRule& rule, const std::string& division, RuleSetData* data) {
  const std::string own = absl::StrCat(division, "_", data->benchmarks[0].name);
  Config* target = nullptr;
  for (Config& config : data->configs) {
    if (config.name == own) target = &config;
    if (!absl::StartsWith(config.name, own)) continue;
    for (KeyRule& other : config.rules) {
      if (other.key != rule.key) continue;
      std::vector<Effect> effects = std::move(other.effects);
      other = rule;
      other.effects = std::move(effects);
      return;
    }
  }
  if (target != nullptr) target->rules.push_back(rule);
}

absl::Status RoundReader::ReadRules(const toml::table& file, RuleSetData* data) const {
  const toml::node* node = file.get("rule");
  if (node == nullptr) return absl::OkStatus();
  if (!node->is_array_of_tables()) return Error(node->source(), "write rules as [[rule]] tables");
  std::set<std::string> ids;
  for (const toml::node& element : *node->as_array()) {
    const toml::table& table = *element.as_table();
    ASSIGN_OR_RETURN(const KeyRule rule, ReadRule(table));
    ASSIGN_OR_RETURN(const std::vector<std::string> divisions, Divisions(table));
    if (!ids.insert(rule.id).second) {
      return Error(table.get("id")->source(), absl::StrCat("rule id ", rule.id, " is used twice"));
    }
    if (rule.key == data->benchmarks[0].quality_key) {
      return Error(table.get("key")->source(), "set the quality with [benchmark] target");
    }
    for (const std::string& division : divisions)
      PutRule(rule, division, data);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RuleSet>> ParseFacilityRound(absl::string_view toml,
                                                                  absl::string_view source) {
  const RoundReader reader(source);
  const ParsedToml file = ParseToml(toml);
  if (file.problem.has_value()) return ToStatus(*file.problem, source);
  ASSIGN_OR_RETURN(RuleSetData data, reader.Read(file.table));
  return std::make_unique<const RuleSet>(std::move(data));
}

}  // namespace assay::rules
