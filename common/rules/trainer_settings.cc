#include "common/rules/trainer_settings.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/rules/benchmark_settings.h"
#include "common/rules/ranks.h"

namespace assay::rules {
namespace {

constexpr char kSection[] = "Assay, settings of the trainer";
constexpr char kBoundariesKey[] = "opt_learning_rate_decay_boundary_epochs";
constexpr char kFactorKey[] = "opt_learning_rate_decay_factor";
constexpr char kFadeKey[] = "opt_learning_rate_decay_epochs";
constexpr char kWarmupEpochsKey[] = "opt_learning_rate_warmup_epochs";
constexpr char kScheduleKey[] = "scheduler_type";
constexpr char kNormalisationKey[] = "batchnorm_group_size";
constexpr char kWarmupFactorKey[] = "opt_learning_rate_warmup_factor";

constexpr TextRule kSettingRules[] = {
    {"R-SET-001", "", "a value of the kind that the trainer reads", kSection,
     "write such a value, or leave it out"},
    {"R-SET-002", "", "a value that the trainer takes", kSection,
     "choose such a value, or leave it out"},
    {"R-SET-003", "", "the model of the closed division", kSection,
     "leave it out, or submit to the open division"},
    {"R-SET-004", kFactorKey, "one positive factor for each boundary, of epochs that differ",
     kSection, "give one factor, or as many as there are boundaries, without a decay over epochs"},
    {"R-SET-005", kWarmupFactorKey, "a factor above 0 while there are warm-up epochs", kSection,
     "choose a factor above 0, or no warm-up epochs"},
    {"R-SET-006", kScheduleKey, "a schedule whose values go together", kSection,
     "change the value that is named"},
    {"R-SET-007", kNormalisationKey, "a divisor of the number of ranks", kSection,
     "choose a divisor, or another number of ranks"},
    {"R-SET-008", kGlobalBatchKey, "samples that fill global batches", kSection,
     "choose another global batch, or a dataset of another size"},
    {"R-SET-009", kGlobalBatchKey, "a batch that fits one rank", kSection,
     "choose a smaller global batch, or more ranks"},
    {"R-SET-010", kGradientSkipLayerSetting, "settings that go together", kSection,
     "leave one of them out"},
};

Finding Unfit(absl::string_view id, absl::string_view key, std::string found) {
  const TextRule& rule = FindRule(kSettingRules, id);
  Finding finding = Violation(rule, absl::StrCat("setting:", key), std::move(found));
  finding.key = std::string(key);
  return finding;
}

Finding Unfit(absl::string_view id, absl::string_view key, std::string expected,
              std::string found) {
  Finding finding = Unfit(id, key, std::move(found));
  finding.expected = std::move(expected);
  return finding;
}

// Values that are of their kinds, with what the trainer takes where there is none.
class Reading {
 public:
  explicit Reading(const Hyperparameters& values) : values_(values) {}

  bool Has(const char* key) const { return values_.contains(key); }
  double Number(const char* key, double otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second.ToDouble().value_or(otherwise);
  }
  int64_t Integer(const char* key, int64_t otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second.AsInt64().value_or(otherwise);
  }
  std::string Text(const char* key, const char* otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() || found->second.AsString() == nullptr
               ? otherwise
               : *found->second.AsString();
  }
  std::vector<double> Numbers(const char* key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::vector<double>() : NumbersOf(found->second);
  }

 private:
  const Hyperparameters& values_;
};

std::vector<Finding> CheckEach(const Hyperparameters& values, const BenchmarkSettings& benchmark,
                               bool is_closed) {
  std::vector<Finding> findings;
  for (const auto& [key, value] : values) {
    // CheckRanks judges its own.
    const Setting* const setting = key == kSpatialGridKey ? nullptr : benchmark.Find(key);
    if (setting == nullptr) continue;
    if (!setting->IsOfKind(value)) {
      findings.push_back(Unfit("R-SET-001", key, setting->Expected(), DumpJson(value)));
    } else if (!setting->Takes(value)) {
      findings.push_back(Unfit("R-SET-002", key, setting->Expected(), DumpJson(value)));
    } else if (is_closed && setting->closed && value.AsInt64() != setting->closed) {
      findings.push_back(Unfit("R-SET-003", key,
                               absl::StrCat(*setting->closed, " in the closed division"),
                               DumpJson(value)));
    }
  }
  return findings;
}

// Factors at boundaries of epochs, or a decay over epochs.
void CheckDecay(const Reading& reading, std::vector<Finding>* findings) {
  const std::vector<double> boundaries = reading.Numbers(kBoundariesKey);
  std::vector<double> factors = reading.Numbers(kFactorKey);
  if (boundaries.empty()) return;
  if (factors.size() == 1)
    while (factors.size() < boundaries.size())
      factors.push_back(factors.back() * factors.front());
  if (factors.size() != boundaries.size()) {
    findings->push_back(
        Unfit("R-SET-004", kFactorKey,
              absl::StrCat("one number or ", boundaries.size(), ", one for each boundary"),
              absl::StrCat(factors.size())));
    return;
  }
  std::set<int64_t> epochs;
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (!epochs.insert(static_cast<int64_t>(boundaries[i])).second)
      findings->push_back(
          Unfit("R-SET-004", kBoundariesKey, absl::StrCat("twice ", boundaries[i])));
    if (!(factors[i] > 0) || !std::isfinite(factors[i]))
      findings->push_back(Unfit("R-SET-004", kFactorKey, absl::StrCat(factors[i])));
  }
  if (reading.Integer(kFadeKey, 0) > 0)
    findings->push_back(Unfit("R-SET-004", kFadeKey, "boundaries beside a decay over epochs"));
}

// Learning rates by epochs.
void CheckEpochRates(const Reading& reading, std::vector<Finding>* findings) {
  CheckDecay(reading, findings);
  const double factor = reading.Number(kWarmupFactorKey, 1);
  const double scale = factor > 0 ? factor : 1;
  const double base = reading.Number("opt_base_learning_rate", 1e-3) / scale;
  if (reading.Integer(kWarmupEpochsKey, 4) > 0 && factor <= 0)
    findings->push_back(Unfit("R-SET-005", kWarmupFactorKey, absl::StrCat(factor)));
  else if (!(base > 0) || !std::isfinite(base * scale))
    findings->push_back(
        Unfit("R-SET-005", kWarmupFactorKey, "a first learning rate above 0", absl::StrCat(base)));
}

void CheckGroups(const Reading& reading, int64_t ranks, std::vector<Finding>* findings) {
  if (const int64_t group = reading.Integer(kNormalisationKey, 1); ranks % group != 0)
    findings->push_back(
        Unfit("R-SET-007", kNormalisationKey, absl::StrCat(group, " of ", ranks, " ranks")));
}

// Learning rates by steps.
void CheckStepRates(const Reading& reading, std::vector<Finding>* findings) {
  if (reading.Integer("scheduler_lr_warmup_steps", 0) == 1 &&
      reading.Number("scheduler_lr_warmup_factor", 1) == 1)
    findings->push_back(Unfit("R-SET-006", "scheduler_lr_warmup_steps",
                              "none, or two and more: one leaves the rate at 0", "1"));
  if (reading.Text(kScheduleKey, "multistep") == "multistep") {
    std::vector<int64_t> milestones;
    for (const double milestone : reading.Numbers("scheduler_milestones"))
      milestones.push_back(std::llround(milestone));
    if (!std::is_sorted(milestones.begin(), milestones.end()))
      findings->push_back(
          Unfit("R-SET-006", "scheduler_milestones", "milestones that ascend", "others"));
    return;
  }
  const auto demand = [&](const char* key, bool is_fit, const char* expected, double found) {
    if (!is_fit) findings->push_back(Unfit("R-SET-006", key, expected, absl::StrCat(found)));
  };
  const double power = reading.Number("scheduler_power", 1);
  const double least = reading.Number("scheduler_eta_min", 0);
  const int64_t period = reading.Integer("scheduler_t_max", 1);
  demand("scheduler_power", power > 0, "a number above 0", power);
  demand("scheduler_t_max", period >= 1, "a whole number from 1", static_cast<double>(period));
  demand("scheduler_eta_min", least >= 0 && least <= reading.Number("opt_lr", 1e-3),
         "a number from 0 to opt_lr", least);
}

void CheckSkip(const Reading& reading, std::vector<Finding>* findings) {
  const bool is_used = !reading.Text(kGradientSkipLayerSetting, "").empty();
  const int64_t epochs = reading.Integer(kGradientSkipEpochsSetting, 0);
  if (!is_used && epochs != 0)
    findings->push_back(Unfit("R-SET-010", kGradientSkipEpochsSetting,
                              absl::StrCat("a layer, ", kGradientSkipLayerSetting, ", beside it"),
                              absl::StrCat(epochs)));
  if (is_used && epochs < 1)
    findings->push_back(Unfit("R-SET-010", kGradientSkipEpochsSetting,
                              "the epochs, 1 or more, for which the layers are trained",
                              absl::StrCat(epochs)));
  if (reading.Integer(kDeviceCacheKey, 0) > 0 &&
      reading.Text(kAugmentationSetting, "none") != "none")
    findings->push_back(Unfit("R-SET-010", kDeviceCacheKey,
                              "no cache of samples that are augmented anew in every epoch",
                              absl::StrCat(reading.Integer(kDeviceCacheKey, 0), " MiB")));
}

void CheckBatches(const Hyperparameters& values, const Reading& reading,
                  const BenchmarkSettings& benchmark, const TrainerTask& task,
                  std::vector<Finding>* findings) {
  GridParts parts;
  if (const auto grid = values.find(kSpatialGridKey); grid != values.end())
    parts = ReadSpatialGrid(grid->second).value_or(GridParts());
  const int64_t groups = std::max<int64_t>(task.ranks / (parts.depth * parts.height), 1);
  constexpr int64_t kReferenceLocalBatch = 4;
  const int64_t batch = reading.Integer(kGlobalBatchKey, kReferenceLocalBatch * groups);
  if (batch / groups > benchmark.local_batch_max) {
    findings->push_back(
        Unfit("R-SET-009", kGlobalBatchKey,
              absl::StrCat("at most ", benchmark.local_batch_max, " for each of ", groups),
              absl::StrCat(batch)));
    return;
  }
  const auto refuse = [&](const char* demand, int64_t samples, const char* split) {
    findings->push_back(Unfit("R-SET-008", kGlobalBatchKey,
                              absl::StrCat(demand, samples, " ", split, " samples"),
                              absl::StrCat(batch)));
  };
  if (!benchmark.has_whole_batches) {
    if (task.train_samples > 0 && task.train_samples < batch)
      refuse("at most the ", task.train_samples, "training");
    return;
  }
  if (task.train_samples % batch != 0) refuse("a divisor of the ", task.train_samples, "training");
  if (task.eval_samples % batch != 0) refuse("a divisor of the ", task.eval_samples, "validation");
}

}  // namespace

bool IsClosedMlperf(absl::string_view division, absl::string_view round) {
  return division == "closed" && absl::StartsWith(round, "hpc-");
}

std::span<const TextRule> SettingRules() {
  return kSettingRules;
}

std::vector<Finding> CheckSettings(const Hyperparameters& values, const TrainerTask& task) {
  const BenchmarkSettings* const benchmark = FindBenchmarkSettings(task.benchmark);
  if (benchmark == nullptr) return {};
  std::vector<Finding> findings =
      CheckEach(values, *benchmark, IsClosedMlperf(task.division, task.round));
  if (!findings.empty()) return findings;  // what goes together is asked of values that are fit
  const Reading reading(values);
  if (benchmark->Find(kWarmupEpochsKey) != nullptr) CheckEpochRates(reading, &findings);
  if (benchmark->Find(kScheduleKey) != nullptr) CheckStepRates(reading, &findings);
  if (benchmark->Find(kNormalisationKey) != nullptr)
    CheckGroups(reading, std::max<int64_t>(task.ranks, 1), &findings);
  CheckSkip(reading, &findings);
  CheckBatches(values, reading, *benchmark, task, &findings);
  return findings;
}

}  // namespace assay::rules
