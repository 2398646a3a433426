#include "common/rules/benchmark_settings.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/strip.h"

#include "common/json_reader.h"
#include "common/log.h"
#include "common/rules/embedded_files.h"
#include "common/rules/ranks.h"

namespace assay::rules {
namespace {

// Not constexpr: under UBSan the address of a key is no constant.
const absl::string_view kOfEveryBenchmark[] = {
    kGlobalBatchKey,
    "opt_name",
    "opt_weight_decay",
    kSpatialGridKey,
    // How often the state is saved.
    "checkpoint_interval_steps",
    // Samples that a rank evaluates at once.
    "local_eval_batch_size",
    kGradientBucketKey,
    kDeviceCacheKey,
    // Beyond the references: not in the closed division.
    "data_augmentation",
    "gradient_skip_layer",
    "gradient_skip_after_epochs",
};

// The files are of this program: what does not fit ends it, with the file's name.
BenchmarkSettings ReadSettings(const EmbeddedFile& file) {
  const JsonResult read = ParseJson(file.text);
  const JsonValue* const names = read.value.Find("hyperparameters");
  CHECK(names != nullptr && names->AsList() != nullptr)
      << "file=" << file.name << " has no list \"hyperparameters\"";
  BenchmarkSettings settings = {.benchmark = std::string(absl::StripSuffix(file.name, ".json"))};
  for (const JsonValue& name : *names->AsList()) {
    CHECK(name.AsString() != nullptr)
        << "file=" << file.name << " hyperparameter=" << DumpJson(name);
    settings.hyperparameters.push_back(*name.AsString());
  }
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

std::vector<std::string> KnownHyperparameters() {
  std::vector<std::string> known(std::begin(kOfEveryBenchmark), std::end(kOfEveryBenchmark));
  for (const BenchmarkSettings& settings : Settings())
    known.insert(known.end(), settings.hyperparameters.begin(), settings.hyperparameters.end());
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

}  // namespace assay::rules
