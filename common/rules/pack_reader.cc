// The reading half of pack.h: JSON back into rules, trusting nothing.

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/pack.h"
#include "common/rules/pack_names.h"
#include "common/status.h"

namespace assay::rules {
namespace {

constexpr int64_t kRunsMax = 1000;
constexpr int64_t kBatchSizeMax = int64_t{1} << 40;
constexpr size_t kReferenceRunsMin = 3;
constexpr int64_t kInitLimitMaxMs = int64_t{24} * 60 * 60 * 1000;

// One JSON object being read: knows its path for messages.
class ObjectReader {
 public:
  // `json` must outlive the reader.
  ObjectReader(const JsonValue& json, std::string path) : json_(json), path_(std::move(path)) {}

  absl::Status Error(absl::string_view name, absl::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ".", name, " ", message));
  }
  bool Has(absl::string_view name) const { return json_.Find(name) != nullptr; }

  // INVALID_ARGUMENT if this is no object or has a member that is not in `known`.
  absl::Status CheckNames(std::initializer_list<absl::string_view> known) const {
    if (json_.AsObject() == nullptr)
      return absl::InvalidArgumentError(absl::StrCat(path_, " is no object"));
    for (const auto& member : *json_.AsObject()) {
      const absl::string_view name = member.first;
      if (std::find(known.begin(), known.end(), name) == known.end())
        return Error(name, absl::StrCat("is unknown; known are ", absl::StrJoin(known, ", ")));
    }
    return absl::OkStatus();
  }

  absl::Status Text(absl::string_view name, std::string* value) const {
    const JsonValue* member = json_.Find(name);
    if (member == nullptr || member->AsString() == nullptr) return Error(name, "must be text");
    *value = *member->AsString();
    return absl::OkStatus();
  }
  absl::Status Bool(absl::string_view name, bool* value) const {
    const JsonValue* member = json_.Find(name);
    if (member == nullptr || !member->AsBool()) return Error(name, "must be true or false");
    *value = *member->AsBool();
    return absl::OkStatus();
  }
  template <typename T>
  absl::Status Integer(absl::string_view name, int64_t min, int64_t max, T* value) const {
    const JsonValue* member = json_.Find(name);
    const std::optional<int64_t> integer = member == nullptr ? std::nullopt : member->AsInt64();
    if (!integer || *integer < min || *integer > max)
      return Error(name, absl::StrCat("must be an integer from ", min, " to ", max));
    *value = static_cast<T>(*integer);
    return absl::OkStatus();
  }
  absl::Status Double(absl::string_view name, double* value) const {
    const JsonValue* member = json_.Find(name);
    const std::optional<double> number = member == nullptr ? std::nullopt : member->ToDouble();
    if (!number || !std::isfinite(*number)) return Error(name, "must be a finite number");
    *value = *number;
    return absl::OkStatus();
  }
  // A member that is a name of the enumeration T.
  template <typename T>
  absl::Status Enum(absl::string_view name, T* value) const {
    std::string text;
    RETURN_IF_ERROR(Text(name, &text));
    const std::optional<T> known = FromName<T>(text);
    if (!known) return Error(name, absl::StrCat("is the unknown \"", text, "\""));
    *value = *known;
    return absl::OkStatus();
  }
  // Every element of a list through `read`, a function from ObjectReader to StatusOr of a T. A list
  // that is not there is empty.
  template <typename T, typename Read>
  absl::Status List(absl::string_view name, Read read, std::vector<T>* elements) const {
    const JsonValue* member = json_.Find(name);
    if (member == nullptr) return absl::OkStatus();
    if (member->AsList() == nullptr) return Error(name, "must be a list");
    for (const JsonValue& element : *member->AsList()) {
      ASSIGN_OR_RETURN(
          T value,
          read(ObjectReader(element, absl::StrCat(path_, ".", name, "[", elements->size(), "]"))));
      elements->push_back(std::move(value));
    }
    return absl::OkStatus();
  }
  // A member that may be missing.
  absl::Status Object(absl::string_view name, JsonObject* value) const {
    const JsonValue* member = json_.Find(name);
    if (member == nullptr) return absl::OkStatus();
    if (member->AsObject() == nullptr) return Error(name, "must be an object");
    *value = *member->AsObject();
    return absl::OkStatus();
  }
  const JsonValue& json() const { return json_; }
  const std::string& path() const { return path_; }

 private:
  const JsonValue& json_;
  std::string path_;
};

absl::StatusOr<std::string> ReadString(const ObjectReader& reader) {
  if (reader.json().AsString() != nullptr) return *reader.json().AsString();
  return absl::InvalidArgumentError(absl::StrCat(reader.path(), " must be text"));
}

absl::StatusOr<JsonValue> ReadValue(const ObjectReader& reader) {
  return reader.json();
}

bool AreUsable(Operands wanted, const std::vector<JsonValue>& operands) {
  switch (wanted) {
    case Operands::kNone:
      return operands.empty();
    case Operands::kOne:
      return operands.size() == 1;
    case Operands::kOneNumber:
      return operands.size() == 1 && operands[0].ToDouble().has_value();
    case Operands::kSome:
      return !operands.empty();
  }
  return false;
}

absl::StatusOr<Condition> ReadCondition(const ObjectReader& reader) {
  RETURN_IF_ERROR(reader.CheckNames({"kind", "operands", "member", "flag"}));
  Condition condition;
  RETURN_IF_ERROR(reader.Enum("kind", &condition.kind));
  RETURN_IF_ERROR(reader.List("operands", ReadValue, &condition.operands));
  if (!AreUsable(OperandsOf(condition.kind), condition.operands))
    return reader.Error("operands", "do not fit the kind");
  if (UsesMember(condition.kind)) RETURN_IF_ERROR(reader.Text("member", &condition.member));
  if (UsesFlag(condition.kind)) RETURN_IF_ERROR(reader.Enum("flag", &condition.flag));
  return condition;
}

absl::StatusOr<Effect> ReadEffect(const ObjectReader& reader) {
  RETURN_IF_ERROR(reader.CheckNames({"kind", "flag", "prefix", "suffix", "lower_case", "only_if"}));
  Effect effect;
  RETURN_IF_ERROR(reader.Enum("kind", &effect.kind));
  if (effect.kind == Effect::Kind::kSetFlag) RETURN_IF_ERROR(reader.Enum("flag", &effect.flag));
  if (effect.kind != Effect::Kind::kEnqueue) return effect;
  RETURN_IF_ERROR(reader.Text("prefix", &effect.prefix));
  RETURN_IF_ERROR(reader.Text("suffix", &effect.suffix));
  RETURN_IF_ERROR(reader.Bool("lower_case", &effect.lower_case));
  if (reader.Has("only_if")) effect.only_if = *reader.json().Find("only_if");
  return effect;
}

absl::StatusOr<KeyRule> ReadRule(const ObjectReader& reader) {
  RETURN_IF_ERROR(reader.CheckNames({"id", "key", "occurrence", "alternatives", "checks",
                                     "some_line", "effects", "topic", "section", "remedy"}));
  KeyRule rule;
  RETURN_IF_ERROR(reader.Text("id", &rule.id));
  RETURN_IF_ERROR(reader.Text("key", &rule.key));
  RETURN_IF_ERROR(reader.Enum("occurrence", &rule.occurrence));
  RETURN_IF_ERROR(reader.List("alternatives", ReadString, &rule.alternatives));
  RETURN_IF_ERROR(reader.List("checks", ReadCondition, &rule.checks));
  RETURN_IF_ERROR(reader.List("some_line", ReadCondition, &rule.some_line));
  RETURN_IF_ERROR(reader.List("effects", ReadEffect, &rule.effects));
  RETURN_IF_ERROR(reader.Enum("topic", &rule.topic));
  RETURN_IF_ERROR(reader.Text("section", &rule.section));
  RETURN_IF_ERROR(reader.Text("remedy", &rule.remedy));
  return rule;
}

absl::StatusOr<double> ReadCount(const ObjectReader& reader) {
  const std::optional<double> count = reader.json().ToDouble();
  if (count && std::isfinite(*count) && *count > 0) return *count;
  return absl::InvalidArgumentError(absl::StrCat(reader.path(), " must be a number above 0"));
}

absl::StatusOr<ReferenceRecord> ReadReference(const ObjectReader& reader) {
  RETURN_IF_ERROR(reader.CheckNames({"name", "batch_size", "epochs"}));
  ReferenceRecord record;
  RETURN_IF_ERROR(reader.Text("name", &record.name));
  RETURN_IF_ERROR(reader.Integer("batch_size", 1, kBatchSizeMax, &record.batch_size));
  RETURN_IF_ERROR(reader.List("epochs", ReadCount, &record.epochs));
  if (record.epochs.size() < kReferenceRunsMin)
    return reader.Error("epochs", absl::StrCat("must be at least ", kReferenceRunsMin,
                                               ": the fastest and the slowest are left out"));
  return record;
}

// By rising batch size, without repetition.
absl::Status CheckOrder(const ObjectReader& reader, const std::vector<ReferenceRecord>& records) {
  for (size_t i = 1; i < records.size(); ++i)
    if (records[i].batch_size <= records[i - 1].batch_size)
      return reader.Error("reference_points",
                          absl::StrCat("must rise in batch_size; ", records[i].name, " does not"));
  return absl::OkStatus();
}

absl::StatusOr<Benchmark> ReadBenchmark(const ObjectReader& reader) {
  RETURN_IF_ERROR(reader.CheckNames({"name", "runs_required", "quality_key", "lower_is_better",
                                     "target", "fixed", "reference_values", "reference_unit",
                                     "reference_points", "document_rules"}));
  Benchmark benchmark;
  RETURN_IF_ERROR(reader.Text("name", &benchmark.name));
  RETURN_IF_ERROR(reader.Integer("runs_required", 1, kRunsMax, &benchmark.runs_required));
  RETURN_IF_ERROR(reader.Text("quality_key", &benchmark.quality_key));
  RETURN_IF_ERROR(reader.Bool("lower_is_better", &benchmark.lower_is_better));
  RETURN_IF_ERROR(reader.Double("target", &benchmark.target));
  RETURN_IF_ERROR(reader.Object("fixed", &benchmark.fixed));
  RETURN_IF_ERROR(reader.Object("reference_values", &benchmark.reference_values));
  if (reader.Has("reference_unit"))
    RETURN_IF_ERROR(reader.Enum("reference_unit", &benchmark.reference_unit));
  RETURN_IF_ERROR(reader.List("reference_points", ReadReference, &benchmark.reference_points));
  RETURN_IF_ERROR(CheckOrder(reader, benchmark.reference_points));
  RETURN_IF_ERROR(reader.List("document_rules", ReadRule, &benchmark.document_rules));
  return benchmark;
}

absl::StatusOr<Config> ReadConfig(const ObjectReader& reader) {
  RETURN_IF_ERROR(reader.CheckNames({"name", "has_flags", "rules"}));
  Config config;
  RETURN_IF_ERROR(reader.Text("name", &config.name));
  RETURN_IF_ERROR(reader.Bool("has_flags", &config.has_flags));
  RETURN_IF_ERROR(reader.List("rules", ReadRule, &config.rules));
  return config;
}

}  // namespace

absl::StatusOr<RuleSetData> RuleSetFromJson(const JsonValue& json) {
  const ObjectReader reader(json, "round");
  RETURN_IF_ERROR(reader.CheckNames(
      {"name", "label", "paper", "is_mlperf", "official_round", "scaling_folders",
       "staging_on_the_clock", "init_limit_ms", "first_pass_from_storage", "data_cold_at_start",
       "first_touch_assurance", "counts", "failed_runs_allowed", "benchmarks", "configs"}));
  RuleSetData data;
  RETURN_IF_ERROR(reader.Text("name", &data.name));
  RETURN_IF_ERROR(reader.Text("label", &data.label));
  RETURN_IF_ERROR(reader.Text("paper", &data.paper));
  RETURN_IF_ERROR(reader.Bool("is_mlperf", &data.is_mlperf));
  RETURN_IF_ERROR(reader.Text("official_round", &data.official_round));
  RETURN_IF_ERROR(reader.Bool("scaling_folders", &data.scaling_folders));
  RETURN_IF_ERROR(reader.Bool("staging_on_the_clock", &data.staging_on_the_clock));
  RETURN_IF_ERROR(reader.Integer("init_limit_ms", 1, kInitLimitMaxMs, &data.init_limit_ms));
  if (reader.Has("first_pass_from_storage"))
    RETURN_IF_ERROR(reader.Bool("first_pass_from_storage", &data.first_pass_from_storage));
  if (reader.Has("data_cold_at_start"))
    RETURN_IF_ERROR(reader.Bool("data_cold_at_start", &data.data_cold_at_start));
  if (reader.Has("first_touch_assurance"))
    RETURN_IF_ERROR(reader.Enum("first_touch_assurance", &data.first_touch_assurance));
  RETURN_IF_ERROR(reader.Enum("counts", &data.scoring.counts));
  RETURN_IF_ERROR(
      reader.Integer("failed_runs_allowed", 0, kRunsMax, &data.scoring.failed_runs_allowed));
  RETURN_IF_ERROR(reader.List("benchmarks", ReadBenchmark, &data.benchmarks));
  RETURN_IF_ERROR(reader.List("configs", ReadConfig, &data.configs));
  if (data.configs.empty()) return reader.Error("configs", "must not be empty");
  return data;
}

}  // namespace assay::rules
