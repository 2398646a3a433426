// What a run may do beyond the reference: hyperparameters of ours, all off by default. The closed
// division allows the evaluation batch and the cache only (common/rules/extensions.h).

#ifndef WORKER_TRAINER_EXTENSIONS_H_
#define WORKER_TRAINER_EXTENSIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "assay/v1/run_spec.pb.h"

#include "common/rules/trainer_settings.h"
#include "worker/data/augmentation.h"
#include "worker/trainer/hyperparameters.h"

namespace assay {

// Hyperparameters, as logged.
inline constexpr char kEvalBatchKey[] = "local_eval_batch_size";
inline constexpr const char* kAugmentationKey = rules::kAugmentationSetting;
inline constexpr const char* kGradientSkipLayerKey = rules::kGradientSkipLayerSetting;
inline constexpr const char* kGradientSkipEpochsKey = rules::kGradientSkipEpochsSetting;

// The layers up to `layer` are trained for so many epochs and then frozen (Model::FreezeThrough).
struct GradientSkip {
  std::string layer;  // empty: none ever is
  int64_t after_epochs = 0;

  bool IsUsed() const { return !layer.empty(); }
  // In 0-based `epoch`.
  bool IsOn(int64_t epoch) const { return IsUsed() && epoch >= after_epochs; }
};

struct Extensions {
  int eval_batch = 0;  // samples that a rank, or a group that shares them, evaluates at once; 0:
                       // as many as it trains on
  int64_t device_cache_mib = 0;  // of samples that each rank's device keeps
  data::Augmentation augmentation = data::Augmentation::kNone;
  GradientSkip gradient_skip;
};

// INVALID_ARGUMENT names the field, what it holds and what is allowed; in the closed division of an
// MLPerf round also the rule that refuses it. Whether the model has the layer is not known here.
absl::StatusOr<Extensions> ReadExtensions(const Hyperparameters& parameters,
                                          const v1::RunSpec& run);

}  // namespace assay

#endif  // WORKER_TRAINER_EXTENSIONS_H_
