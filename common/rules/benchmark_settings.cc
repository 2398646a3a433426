#include "common/rules/benchmark_settings.h"

#include <algorithm>
#include <iterator>

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

constexpr absl::string_view kCosmoflow[] = {
    "opt_base_learning_rate",
    "opt_learning_rate_warmup_epochs",
    "opt_learning_rate_warmup_factor",
    "opt_learning_rate_decay_boundary_epochs",
    "opt_learning_rate_decay_factor",
    "dropout",
    // Of the model; a facility's round may fix them.
    "cube_edge",
    "base_filter_count",
    // Beyond the reference.
    "opt_learning_rate_decay_epochs",
    "opt_learning_rate_decay_end_factor",
    "opt_learning_rate_decay_poly_power",
};

constexpr absl::string_view kDeepcam[] = {
    "opt_lr",
    "opt_betas",
    "opt_eps",
    "opt_max_grad_norm",
    "scheduler_type",
    "scheduler_milestones",
    "scheduler_decay_rate",
    "scheduler_t_max",
    "scheduler_eta_min",
    "scheduler_lr_warmup_steps",
    "scheduler_lr_warmup_factor",
    "batchnorm_group_size",
    "gradient_accumulation_frequency",
    // Of the model; a facility's round may fix them.
    "map_height",
    "map_width",
    "base_filter_count",
    "middle_block_count",
    // Beyond the reference.
    "scheduler_power",
};

constexpr BenchmarkSettings kSettings[] = {
    // Five poolings halve each edge, and none may cross a block.
    {"cosmoflow", kCosmoflow, "cube_edge", 32},
    {"deepcam", kDeepcam},
};

}  // namespace

std::span<const BenchmarkSettings> AllBenchmarkSettings() {
  return kSettings;
}

const BenchmarkSettings* FindBenchmarkSettings(absl::string_view benchmark) {
  const auto* const found = std::find_if(
      std::begin(kSettings), std::end(kSettings),
      [benchmark](const BenchmarkSettings& row) { return row.benchmark == benchmark; });
  return found == std::end(kSettings) ? nullptr : found;
}

std::vector<std::string> KnownHyperparameters() {
  std::vector<std::string> known(std::begin(kOfEveryBenchmark), std::end(kOfEveryBenchmark));
  for (const BenchmarkSettings& row : kSettings)
    for (const absl::string_view key : row.hyperparameters)
      known.emplace_back(key);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

}  // namespace assay::rules
