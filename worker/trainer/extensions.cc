#include "worker/trainer/extensions.h"

#include <optional>

#include "absl/strings/str_cat.h"

#include "common/json_reader.h"
#include "common/rules/extensions.h"
#include "common/rules/ranks.h"
#include "common/status.h"
#include "worker/trainer/workload.h"

namespace assay {
namespace {

constexpr int64_t kEvalBatchMax = 4096;

// The coordinator refuses these already; a run spec may come from elsewhere.
absl::Status CheckDivision(const v1::RunSpec& run) {
  if (!IsClosedMlperf(run)) return absl::OkStatus();
  for (const v1::Hyperparameter& parameter : run.hyperparameters()) {
    const JsonResult parsed = ParseJson(parameter.json_value());
    const std::optional<rules::Finding> finding =
        rules::CheckExtension(parameter.key(), parsed.value);
    if (finding.has_value())
      return InvalidField(parameter.key(),
                          absl::StrCat("the closed division has ", finding->expected, " (",
                                       finding->rule_id, "); ", finding->remedy));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadDeviceCache(const Hyperparameters& parameters,
                                        data::Augmentation augmentation) {
  ASSIGN_OR_RETURN(const int64_t mebibytes, parameters.Integer(rules::kDeviceCacheKey, 0));
  if (mebibytes > 0 && augmentation != data::Augmentation::kNone)
    return InvalidField(rules::kDeviceCacheKey,
                        absl::StrCat("augmented samples differ in every epoch; leave it out, or ",
                                     kAugmentationKey));
  return mebibytes;
}

absl::StatusOr<GradientSkip> ReadGradientSkip(const Hyperparameters& parameters) {
  GradientSkip skip;
  ASSIGN_OR_RETURN(skip.layer, parameters.Text(kGradientSkipLayerKey, ""));
  ASSIGN_OR_RETURN(skip.after_epochs, parameters.Integer(kGradientSkipEpochsKey, 0));
  if (!skip.IsUsed() && skip.after_epochs != 0)
    return InvalidField(kGradientSkipEpochsKey,
                        absl::StrCat("say with ", kGradientSkipLayerKey, " up to which layer"));
  if (skip.IsUsed() && skip.after_epochs < 1)
    return InvalidField(
        kGradientSkipEpochsKey,
        absl::StrCat("want the number of epochs, 1 or more, for which layers up to ", skip.layer,
                     " are trained; found ", skip.after_epochs));
  return skip;
}

}  // namespace

absl::StatusOr<Extensions> ReadExtensions(const Hyperparameters& parameters,
                                          const v1::RunSpec& run) {
  RETURN_IF_ERROR(CheckDivision(run));
  Extensions extensions;
  ASSIGN_OR_RETURN(const int64_t eval_batch, parameters.Integer(kEvalBatchKey, 0));
  if (eval_batch < 0 || eval_batch > kEvalBatchMax)
    return InvalidField(kEvalBatchKey, absl::StrCat("want 0 (as in training) to ", kEvalBatchMax,
                                                    ", found ", eval_batch));
  extensions.eval_batch = static_cast<int>(eval_batch);
  ASSIGN_OR_RETURN(const std::string augmentation, parameters.Text(kAugmentationKey, "none"));
  const absl::StatusOr<data::Augmentation> parsed = data::ParseAugmentation(augmentation);
  if (!parsed.ok()) return InvalidField(kAugmentationKey, parsed.status().message());
  extensions.augmentation = *parsed;
  ASSIGN_OR_RETURN(extensions.device_cache_mib,
                   ReadDeviceCache(parameters, extensions.augmentation));
  ASSIGN_OR_RETURN(extensions.gradient_skip, ReadGradientSkip(parameters));
  return extensions;
}

}  // namespace assay
