#include "common/rules/pack.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "common/json_reader.h"
#include "common/rules/pack_names.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::rules {
namespace {

// With the texts for people, or only what judges.
enum class Texts { kKept, kLeftOut };

JsonList Strings(const std::vector<std::string>& texts) {
  return JsonList(texts.begin(), texts.end());
}

JsonValue ToJson(const Condition& condition) {
  JsonObject json = {{"kind", NameOf(condition.kind)}};
  if (!condition.operands.empty()) json.emplace_back("operands", JsonList(condition.operands));
  if (!condition.member.empty()) json.emplace_back("member", condition.member);
  if (UsesFlag(condition.kind)) json.emplace_back("flag", NameOf(condition.flag));
  return json;
}

JsonValue ToJson(const Effect& effect) {
  JsonObject json = {{"kind", NameOf(effect.kind)}};
  if (effect.kind == Effect::Kind::kSetFlag) json.emplace_back("flag", NameOf(effect.flag));
  if (effect.kind != Effect::Kind::kEnqueue) return json;
  json.emplace_back("prefix", effect.prefix);
  json.emplace_back("suffix", effect.suffix);
  json.emplace_back("lower_case", effect.lower_case);
  if (effect.only_if) json.emplace_back("only_if", *effect.only_if);
  return json;
}

template <typename T>
JsonList ToJsonList(const std::vector<T>& elements) {
  JsonList list;
  for (const T& element : elements)
    list.push_back(ToJson(element));
  return list;
}

JsonValue ToJson(const KeyRule& rule, Texts texts) {
  JsonObject json = {{"id", rule.id},
                     {"key", rule.key},
                     {"occurrence", NameOf(rule.occurrence)},
                     {"alternatives", Strings(rule.alternatives)},
                     {"checks", ToJsonList(rule.checks)},
                     {"some_line", ToJsonList(rule.some_line)},
                     {"effects", ToJsonList(rule.effects)},
                     {"topic", NameOf(rule.topic)}};
  if (texts == Texts::kLeftOut) return json;
  json.emplace_back("section", rule.section);
  json.emplace_back("remedy", rule.remedy);
  return json;
}

JsonList ToJson(const std::vector<KeyRule>& rules, Texts texts) {
  JsonList list;
  for (const KeyRule& rule : rules)
    list.push_back(ToJson(rule, texts));
  return list;
}

JsonValue ToJson(const RuleSetData& data, Texts texts) {
  JsonList benchmarks, configs;
  for (const Benchmark& benchmark : data.benchmarks) {
    benchmarks.push_back(JsonObject{{"name", benchmark.name},
                                    {"runs_required", benchmark.runs_required},
                                    {"quality_key", benchmark.quality_key},
                                    {"lower_is_better", benchmark.lower_is_better},
                                    {"target", benchmark.target},
                                    {"document_rules", ToJson(benchmark.document_rules, texts)}});
  }
  for (const Config& config : data.configs) {
    configs.push_back(JsonObject{{"name", config.name},
                                 {"has_flags", config.has_flags},
                                 {"rules", ToJson(config.rules, texts)}});
  }
  JsonObject json = {{"name", data.name}};
  if (texts == Texts::kKept) json.emplace_back("label", data.label);
  json.emplace_back("is_mlperf", data.is_mlperf);
  json.emplace_back("staging_on_the_clock", data.staging_on_the_clock);
  json.emplace_back("init_limit_ms", data.init_limit_ms);
  json.emplace_back("failed_runs_allowed", data.failed_runs_allowed);
  json.emplace_back("benchmarks", std::move(benchmarks));
  json.emplace_back("configs", std::move(configs));
  return json;
}

absl::Status Broken(absl::string_view source, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", why));
}

absl::StatusOr<std::string> SignatureOf(const JsonValue& file) {
  const JsonValue* signature = file.Find("signature");
  if (signature == nullptr) return std::string();
  const JsonValue* algorithm = signature->Find("algorithm");
  const JsonValue* value = signature->Find("value");
  std::string bytes;
  if (algorithm == nullptr || !PythonEquals(*algorithm, "Ed25519") || value == nullptr ||
      value->AsString() == nullptr || !absl::Base64Unescape(*value->AsString(), &bytes)) {
    return absl::InvalidArgumentError("its signature is not Ed25519 in base64");
  }
  return bytes;
}

}  // namespace

JsonValue RuleSetToJson(const RuleSetData& data) {
  return ToJson(data, Texts::kKept);
}

std::string CanonicalText(const RuleSetData& data) {
  return DumpJson(ToJson(data, Texts::kLeftOut));
}

std::string CanonicalText(const KeyRule& rule) {
  return DumpJson(ToJson(rule, Texts::kLeftOut));
}

std::string PackMessage(const RuleSetData& data) {
  return absl::StrCat(kPackSchema, "\n", DumpJson(RuleSetToJson(data)));
}

std::string WritePack(const RuleSetData& data, absl::string_view signature) {
  JsonObject file = {{"schema", kPackSchema},
                     {"round", RuleSetToJson(data)},
                     {"digest", Sha256Hex(CanonicalText(data))}};
  if (!signature.empty()) {
    file.emplace_back("signature", JsonObject{{"algorithm", "Ed25519"},
                                              {"value", absl::Base64Escape(signature)}});
  }
  return absl::StrCat(DumpJson(file), "\n");
}

absl::StatusOr<Pack> ReadPack(absl::string_view text, absl::string_view source) {
  const JsonResult file = ParseJson(text);
  if (file.error != JsonError::kNone) return Broken(source, "no JSON");
  const JsonValue* schema = file.value.Find("schema");
  if (schema == nullptr || !PythonEquals(*schema, kPackSchema)) {
    return Broken(source, absl::StrCat("no rule pack: its schema is not ", kPackSchema));
  }
  const JsonValue* round = file.value.Find("round");
  if (round == nullptr) return Broken(source, "it has no member \"round\"");
  Pack pack;
  absl::StatusOr<RuleSetData> data = RuleSetFromJson(*round);
  if (!data.ok()) return Annotate(data.status(), source);
  pack.data = *std::move(data);
  absl::StatusOr<std::string> signature = SignatureOf(file.value);
  if (!signature.ok()) return Annotate(signature.status(), source);
  pack.signature = *std::move(signature);
  pack.digest = Sha256Hex(CanonicalText(pack.data));
  const JsonValue* digest = file.value.Find("digest");
  if (digest == nullptr || !PythonEquals(*digest, pack.digest)) {
    return absl::DataLossError(
        absl::StrCat(source, ": its digest is not that of its rules, ", pack.digest));
  }
  pack.message = PackMessage(pack.data);
  return pack;
}

}  // namespace assay::rules
