#include "common/rules/pack.h"

#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "common/json_reader.h"
#include "common/rules/pack_names.h"
#include "common/rules/registry.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::rules {
namespace {

// Which of the forms that one rule set has.
struct Form {
  bool has_texts = true;   // and all else that does not judge
  bool is_former = false;  // version 1
};
constexpr Form kJudging = {.has_texts = false};

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

// Counts of epochs are integers in every published table.
JsonValue ToNumber(double value) {
  return value == std::floor(value) ? JsonValue(static_cast<int64_t>(value)) : JsonValue(value);
}

JsonValue ToJson(const ReferenceRecord& record) {
  JsonList epochs;
  for (const double count : record.epochs)
    epochs.push_back(ToNumber(count));
  return JsonObject{
      {"name", record.name}, {"batch_size", record.batch_size}, {"epochs", std::move(epochs)}};
}

template <typename T>
JsonList ToJsonList(const std::vector<T>& elements) {
  JsonList list;
  for (const T& element : elements)
    list.push_back(ToJson(element));
  return list;
}

JsonValue ToJson(const KeyRule& rule, Form form) {
  JsonObject json = {{"id", rule.id},
                     {"key", rule.key},
                     {"occurrence", NameOf(rule.occurrence)},
                     {"alternatives", Strings(rule.alternatives)},
                     {"checks", ToJsonList(rule.checks)},
                     {"some_line", ToJsonList(rule.some_line)},
                     {"effects", ToJsonList(rule.effects)},
                     {"topic", NameOf(rule.topic)}};
  if (!form.has_texts) return json;
  json.emplace_back("section", rule.section);
  json.emplace_back("remedy", rule.remedy);
  return json;
}

JsonList ToJson(const std::vector<KeyRule>& rules, Form form) {
  JsonList list;
  for (const KeyRule& rule : rules)
    list.push_back(ToJson(rule, form));
  return list;
}

JsonValue ToJson(const Benchmark& benchmark, Form form) {
  JsonObject json = {{"name", benchmark.name},
                     {"runs_required", benchmark.runs_required},
                     {"quality_key", benchmark.quality_key},
                     {"lower_is_better", benchmark.lower_is_better},
                     {"target", benchmark.target}};
  if (!form.is_former) {
    json.emplace_back("fixed", benchmark.fixed);
    if (form.has_texts) json.emplace_back("reference_values", benchmark.reference_values);
    json.emplace_back("reference_unit", NameOf(benchmark.reference_unit));
    json.emplace_back("reference_points", ToJsonList(benchmark.reference_points));
  }
  json.emplace_back("document_rules", ToJson(benchmark.document_rules, form));
  return json;
}

JsonValue ToJson(const RuleSetData& data, Form form) {
  JsonList benchmarks, configs;
  for (const Benchmark& benchmark : data.benchmarks)
    benchmarks.push_back(ToJson(benchmark, form));
  for (const Config& config : data.configs) {
    configs.push_back(JsonObject{{"name", config.name},
                                 {"has_flags", config.has_flags},
                                 {"rules", ToJson(config.rules, form)}});
  }
  JsonObject json = {{"name", data.name}};
  if (form.has_texts) json.emplace_back("label", data.label);
  if (form.has_texts && !form.is_former) json.emplace_back("paper", data.paper);
  json.emplace_back("is_mlperf", data.is_mlperf);
  if (!form.is_former) {
    json.emplace_back("official_round", data.official_round);
    json.emplace_back("scaling_folders", data.scaling_folders);
  }
  json.emplace_back("staging_on_the_clock", data.staging_on_the_clock);
  json.emplace_back("init_limit_ms", data.init_limit_ms);
  // Rounds from before them keep their digests.
  if (data.first_pass_from_storage) json.emplace_back("first_pass_from_storage", true);
  if (data.data_cold_at_start) json.emplace_back("data_cold_at_start", true);
  if (data.first_touch_assurance != Assurance::kSelfReported)
    json.emplace_back("first_touch_assurance", NameOf(data.first_touch_assurance));
  if (!form.is_former) json.emplace_back("counts", NameOf(data.scoring.counts));
  json.emplace_back("failed_runs_allowed", data.scoring.failed_runs_allowed);
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

// INVALID_ARGUMENT if `object`, at `path`, has a member that version 1 did not know: its digest and
// its signature do not cover it.
absl::Status CheckFormer(const JsonValue& object, absl::string_view path,
                         std::initializer_list<absl::string_view> later) {
  for (const absl::string_view name : later)
    if (object.Find(name) != nullptr)
      return absl::InvalidArgumentError(
          absl::StrCat(path, ".", name, " is unknown in version 1 of packs"));
  return absl::OkStatus();
}

absl::Status CheckFormerRound(const JsonValue& round) {
  RETURN_IF_ERROR(
      CheckFormer(round, "round", {"paper", "official_round", "scaling_folders", "counts"}));
  const JsonValue* benchmarks = round.Find("benchmarks");
  if (benchmarks == nullptr || benchmarks->AsList() == nullptr) return absl::OkStatus();
  int index = 0;
  for (const JsonValue& benchmark : *benchmarks->AsList())
    RETURN_IF_ERROR(
        CheckFormer(benchmark, absl::StrCat("round.benchmarks[", index++, "]"),
                    {"fixed", "reference_values", "reference_unit", "reference_points"}));
  return absl::OkStatus();
}

// What version 1 left out, as a facility's own round had it.
absl::StatusOr<RuleSetData> ReadFormer(const JsonValue& round) {
  const RuleSetData unsaid;
  if (round.AsObject() == nullptr) return absl::InvalidArgumentError("round is no object");
  RETURN_IF_ERROR(CheckFormerRound(round));
  JsonObject json = *round.AsObject();
  json.emplace_back("paper", unsaid.paper);
  json.emplace_back("official_round", unsaid.official_round);
  json.emplace_back("scaling_folders", unsaid.scaling_folders);
  json.emplace_back("counts", NameOf(unsaid.scoring.counts));
  return RuleSetFromJson(json);
}

// A copy of a built-in round is completed from it.
void Complete(absl::string_view former_digest, RuleSetData* data) {
  for (const RuleSet* built_in : BuiltInRuleSets()) {
    if (!built_in->IsKnownAs(former_digest)) continue;
    const RuleSetData& whole = built_in->data();
    data->paper = whole.paper;
    data->official_round = whole.official_round;
    data->scaling_folders = whole.scaling_folders;
    data->scoring.counts = whole.scoring.counts;
    for (size_t i = 0; i < whole.benchmarks.size(); ++i) {  // the digest says they are the same
      Benchmark* benchmark = &data->benchmarks[i];
      std::vector<KeyRule> rules = std::move(benchmark->document_rules);
      *benchmark = whole.benchmarks[i];
      benchmark->document_rules = std::move(rules);
    }
  }
}

}  // namespace

JsonValue RuleSetToJson(const RuleSetData& data) {
  return ToJson(data, Form{});
}

std::string CanonicalText(const RuleSetData& data) {
  return DumpJson(ToJson(data, kJudging));
}

std::string FormerCanonicalText(const RuleSetData& data) {
  return DumpJson(ToJson(data, Form{.has_texts = false, .is_former = true}));
}

std::string CanonicalText(const KeyRule& rule) {
  return DumpJson(ToJson(rule, kJudging));
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
  const bool is_former = schema != nullptr && PythonEquals(*schema, kFormerPackSchema);
  if (schema == nullptr || (!is_former && !PythonEquals(*schema, kPackSchema))) {
    return Broken(source, absl::StrCat("no rule pack: its schema is neither ", kPackSchema, " nor ",
                                       kFormerPackSchema));
  }
  const JsonValue* round = file.value.Find("round");
  if (round == nullptr) return Broken(source, "it has no member \"round\"");
  Pack pack;
  absl::StatusOr<RuleSetData> data = is_former ? ReadFormer(*round) : RuleSetFromJson(*round);
  if (!data.ok()) return Annotate(data.status(), source);
  pack.data = *std::move(data);
  absl::StatusOr<std::string> signature = SignatureOf(file.value);
  if (!signature.ok()) return Annotate(signature.status(), source);
  pack.signature = *std::move(signature);
  pack.digest = Sha256Hex(is_former ? FormerCanonicalText(pack.data) : CanonicalText(pack.data));
  const JsonValue* digest = file.value.Find("digest");
  if (digest == nullptr || !PythonEquals(*digest, pack.digest)) {
    return absl::DataLossError(
        absl::StrCat(source, ": its digest is not that of its rules, ", pack.digest));
  }
  pack.message = PackMessage(pack.data);
  if (is_former) {
    pack.message =
        absl::StrCat(kFormerPackSchema, "\n", DumpJson(ToJson(pack.data, Form{.is_former = true})));
    Complete(pack.digest, &pack.data);
  }
  return pack;
}

}  // namespace assay::rules
