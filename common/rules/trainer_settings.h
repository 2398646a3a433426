// What the hyperparameters of an entry must be for the native trainer to take them: what no rule of
// MLPerf judges, but what would end every run at its start. Judged before anything is queued.

#ifndef COMMON_RULES_TRAINER_SETTINGS_H_
#define COMMON_RULES_TRAINER_SETTINGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/finding.h"
#include "common/rules/hyperparameters.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

inline constexpr char kAugmentationSetting[] = "data_augmentation";
inline constexpr char kGradientSkipLayerSetting[] = "gradient_skip_layer";
inline constexpr char kGradientSkipEpochsSetting[] = "gradient_skip_after_epochs";

// For what a trainer is set.
struct TrainerTask {
  std::string benchmark;
  std::string division;
  std::string round;
  int64_t ranks = 1;
  int64_t train_samples = 0;  // of the dataset; 0: not known, so not judged
  int64_t eval_samples = 0;
};

// Whether it is of MLPerf's closed division, which fixes the model.
bool IsClosedMlperf(absl::string_view division, absl::string_view round);

// The rules, by id.
std::span<const TextRule> SettingRules();

// What of `values`, hyperparameters and what is known of the dataset's samples, the trainer would
// refuse, beyond what CheckRanks says of ranks; a value that is left out is never refused. The
// trainer's own checks say the same of each: tests/worker/trainer/settings_test.cc compares them.
//   R-SET-001 another kind of value; 002 a value that it does not take; 003 the model of the closed
//   division; 004 the learning rate's decay; 005 its warm-up; 006 its schedule over steps; 007
//   ranks that normalise together; 008 samples that do not fill global batches; 009 a rank's batch;
//   010 settings that need or exclude each other.
// Nothing of a benchmark that the trainer does not have.
std::vector<Finding> CheckSettings(const Hyperparameters& values, const TrainerTask& task);

}  // namespace assay::rules

#endif  // COMMON_RULES_TRAINER_SETTINGS_H_
