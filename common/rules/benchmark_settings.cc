#include "common/rules/benchmark_settings.h"

#include <algorithm>

#include "absl/strings/strip.h"

#include "common/json_reader.h"
#include "common/log.h"
#include "common/rules/embedded_files.h"
#include "common/rules/ranks.h"
#include "common/rules/trainer_settings.h"

namespace assay::rules {
namespace {

// Of every benchmark.
const std::vector<Setting>& CommonSettings() {
  using SettingKind = Setting::Kind;
  static const auto* const settings = new std::vector<Setting>{
      {.key = kGlobalBatchKey, .kind = SettingKind::kInteger, .bounds = {.min = 1}},
      {.key = "opt_name", .kind = SettingKind::kText},
      {.key = "opt_weight_decay"},
      {.key = kSpatialGridKey, .kind = SettingKind::kNumbers},
      // How often the state is saved.
      {.key = "checkpoint_interval_steps", .kind = SettingKind::kInteger, .bounds = {.min = 0}},
      // Samples that a rank evaluates at once.
      {.key = "local_eval_batch_size",
       .kind = SettingKind::kInteger,
       .bounds = {.min = 0, .max = 4096}},
      {.key = kGradientBucketKey, .kind = SettingKind::kInteger},
      {.key = kDeviceCacheKey, .kind = SettingKind::kInteger},
      {.key = kMemoryLimitKey, .kind = SettingKind::kInteger},
      // Beyond the references: not in the closed division.
      {.key = kAugmentationSetting,
       .kind = SettingKind::kText,
       .choices = {"none", "flips", "flips_and_permutations"}},
      {.key = kGradientSkipLayerSetting, .kind = SettingKind::kText},
      {.key = kGradientSkipEpochsSetting, .kind = SettingKind::kInteger},
  };
  return *settings;
}

const Setting* FindIn(const std::vector<Setting>& settings, absl::string_view key) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [key](const Setting& one) { return one.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

std::vector<ExcludedBackend> ReadExcluded(absl::string_view file, const JsonValue* list) {
  std::vector<ExcludedBackend> backends;
  if (list == nullptr) return backends;
  CHECK(list->AsList() != nullptr) << "file=" << file << " \"excluded_backends\" is a list";
  for (const JsonValue& backend : *list->AsList()) {
    const JsonValue* const name = backend.Find("name");
    const JsonValue* const remedy = backend.Find("remedy");
    CHECK(name != nullptr && name->AsString() != nullptr && remedy != nullptr &&
          remedy->AsString() != nullptr)
        << "file=" << file << " needs \"name\" and \"remedy\" of excluded backends";
    backends.push_back({*name->AsString(), *remedy->AsString()});
  }
  return backends;
}

// The files are of this program: what does not fit ends it, with the file's name.
BenchmarkSettings ReadSettings(const EmbeddedFile& file) {
  const JsonResult read = ParseJson(file.text);
  const JsonValue* const described = read.value.Find("hyperparameters");
  const JsonValue* const batch = read.value.Find("local_batch_max");
  const JsonValue* const whole = read.value.Find("has_whole_batches");
  CHECK(described != nullptr && described->AsObject() != nullptr && batch != nullptr &&
        whole != nullptr)
      << "file=" << file.name
      << " needs \"hyperparameters\", \"local_batch_max\" and \"has_whole_batches\"";
  BenchmarkSettings settings = {.benchmark = std::string(absl::StripSuffix(file.name, ".json"))};
  for (const auto& [key, description] : *described->AsObject())
    settings.settings.push_back(ReadSetting(file.name, key, description));
  settings.local_batch_max = batch->AsInt64().value();
  settings.has_whole_batches = whole->AsBool().value();
  settings.excluded_backends = ReadExcluded(file.name, read.value.Find("excluded_backends"));
  const JsonValue* const edge = read.value.Find("shared_edge");
  const JsonValue* const unit = read.value.Find("block_unit");
  if (edge == nullptr && unit == nullptr) return settings;
  CHECK(edge != nullptr && edge->AsString() != nullptr && unit != nullptr &&
        unit->AsInt64().value_or(0) > 0)
      << "file=" << file.name << " needs \"shared_edge\", a setting's name, and \"block_unit\"";
  settings.shared_edge = *edge->AsString();
  settings.block_unit = *unit->AsInt64();
  return settings;
}

const std::vector<BenchmarkSettings>& Settings() {
  static const auto* const settings = [] {
    auto* const read = new std::vector<BenchmarkSettings>;
    for (const EmbeddedFile& file : EmbeddedBenchmarks())
      read->push_back(ReadSettings(file));
    return read;
  }();
  return *settings;
}

}  // namespace

std::span<const BenchmarkSettings> AllBenchmarkSettings() {
  return Settings();
}

const BenchmarkSettings* FindBenchmarkSettings(absl::string_view benchmark) {
  for (const BenchmarkSettings& settings : Settings())
    if (settings.benchmark == benchmark) return &settings;
  return nullptr;
}

const Setting* BenchmarkSettings::Find(absl::string_view key) const {
  const Setting* const own = FindIn(settings, key);
  return own != nullptr ? own : FindIn(CommonSettings(), key);
}

std::vector<std::string> KnownHyperparameters() {
  std::vector<std::string> known;
  for (const Setting& setting : CommonSettings())
    known.push_back(setting.key);
  for (const BenchmarkSettings& benchmark : Settings())
    for (const Setting& setting : benchmark.settings)
      known.push_back(setting.key);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

}  // namespace assay::rules
