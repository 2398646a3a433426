// Round 0.7 (2020): CosmoFlow and DeepCAM. The reference checker never had rules for it; these
// accept every published result whose run met its target (rules specification, 3.10), and differ
// from round 1.0 in:
//   - number_of_nodes, accelerators_per_node: not yet known, so optional; cache_clear too
//   - run_stop needs no status; eval_start and eval_stop need no epoch_num
//   - CosmoFlow may name its optimizer SGDWD (Mesh TensorFlow)
//   - DeepCAM uses the older key names, and may drop samples to fill its ranks
//   - initialisation is limited to 20 minutes, as in training 0.7.0

#include <algorithm>

#include "common/rules/hpc_tables.h"
#include "common/rules/rounds.h"

namespace assay::rules {
namespace {

constexpr int64_t kInitLimitV07Ms = 20 * 60 * 1000;

KeyRule* Find(absl::string_view key, Config* config) {
  const auto found = std::find_if(config->rules.begin(), config->rules.end(),
                                  [&](const KeyRule& rule) { return rule.key == key; });
  return found == config->rules.end() ? nullptr : &*found;
}

Config LenientCommon() {
  Config config = CommonConfig({.init_limit_ms = kInitLimitV07Ms});
  Find("cache_clear", &config)->occurrence = Occurrence::kOptional;
  Find("run_stop", &config)->checks = {FlagSet(Flag::kRunStarted)};
  Find("eval_start", &config)->checks.clear();
  Find("eval_stop", &config)->checks.clear();
  return config;
}

Config LenientClosedCommon(const std::vector<std::string>& benchmarks) {
  Config config = ClosedCommonConfig(benchmarks);
  Find("number_of_nodes", &config)->occurrence = Occurrence::kOptional;
  Find("accelerators_per_node", &config)->occurrence = Occurrence::kOptional;
  return config;
}

// The optimizer's name as logged then; the document of July 2020 knows sgd only.
std::vector<Config> LenientCosmoflow() {
  std::vector<Config> configs = CosmoflowConfigs();
  KeyRule* opt_name = Find("opt_name", &configs[0]);
  opt_name->checks = {OneOf({"sgd", "SGD", "SGDWD"})};
  return configs;
}

std::vector<Config> DeepcamV07() {
  const Benchmark benchmark = Deepcam();
  const KeyRule quality = QualityRule("R-QUA-002", benchmark);
  Config closed = {
      .name = "closed_deepcam",
      .rules = {Hyperparameter("R-HP-103", "global_batch_size", {Greater(0)}),
                Hyperparameter("R-HP-105", "opt_name", {OneOf({"AdamW", "LAMB"})},
                               "set opt_name to AdamW or LAMB, or submit to open"),
                Hyperparameter("R-HP-150", "opt_base_learning_rate", {Greater(0)}),
                Hyperparameter("R-HP-151", "opt_learning_rate_warmup_steps", {AtLeast(0)}),
                Hyperparameter("R-HP-152", "opt_learning_rate_warmup_factor", {AtLeast(1)}),
                Hyperparameter("R-HP-153", "opt_epsilon", {OneOf({1e-6, 1e-8})}), quality}};
  return {std::move(closed), {.name = "open_deepcam", .rules = {quality}}};
}

}  // namespace

RuleSetData HpcV0_7() {
  const std::vector<std::string> benchmarks = {"cosmoflow", "deepcam"};
  RuleSetData data = {
      .name = "hpc-0.7.0",
      .label = "MLPerf HPC v0.7, as lenient as its published results need",
      .staging_on_the_clock = true,
      .init_limit_ms = kInitLimitV07Ms,
      .benchmarks = {Cosmoflow(), Deepcam()},
      .configs = {LenientCommon(), LenientClosedCommon(benchmarks), OpenCommonConfig(benchmarks)}};
  for (Benchmark& benchmark : data.benchmarks)
    benchmark.document_rules.clear();
  Append(LenientCosmoflow(), &data.configs);
  Append(DeepcamV07(), &data.configs);
  return data;
}

}  // namespace assay::rules
