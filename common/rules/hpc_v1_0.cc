// Round 1.0 (2021): CosmoFlow, DeepCAM, OpenCatalyst. Data starts on a shared parallel file system,
// so staging is inside the timed part. All tables are the shared ones.

#include "common/rules/hpc_tables.h"
#include "common/rules/rounds.h"

namespace assay::rules {

RuleSetData HpcV1_0() {
  const std::vector<std::string> benchmarks = {"deepcam", "cosmoflow", "oc20"};
  RuleSetData data = {.name = "hpc-1.0.0",
                      .label = "MLPerf HPC v1.0",
                      .staging_on_the_clock = true,
                      .init_limit_ms = kInitLimitMs,
                      .benchmarks = {Cosmoflow(), Deepcam(), Oc20()},
                      .configs = {CommonConfig({.staging_after_run_start = true}),
                                  ClosedCommonConfig(benchmarks), OpenCommonConfig(benchmarks)}};
  Append(CosmoflowConfigs(), &data.configs);
  Append(DeepcamConfigs(), &data.configs);
  Append(Oc20Configs(), &data.configs);
  return data;
}

}  // namespace assay::rules
