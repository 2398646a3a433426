// Round 3.0 (2023): OpenFold joins, and data may start on any durable storage, so staging may come
// before run_start and is then not timed. Everything else is as in round 2.0.

#include "common/rules/hpc_tables.h"
#include "common/rules/rounds.h"

namespace assay::rules {

RuleSetData HpcV3_0() {
  const std::vector<std::string> benchmarks = {"deepcam", "cosmoflow", "oc20", "openfold"};
  RuleSetData data = {.name = "hpc-3.0.0",
                      .label = "MLPerf HPC v3.0",
                      .staging_on_the_clock = false,
                      .init_limit_ms = kInitLimitMs,
                      .benchmarks = {Cosmoflow(), Deepcam(), Oc20(), Openfold()},
                      .configs = {CommonConfig({.staging_after_run_start = false}),
                                  ClosedCommonConfig(benchmarks), OpenCommonConfig(benchmarks)}};
  Append(CosmoflowConfigs(), &data.configs);
  Append(DeepcamConfigs(), &data.configs);
  Append(Oc20Configs(), &data.configs);
  Append(OpenfoldConfigs(), &data.configs);
  return data;
}

}  // namespace assay::rules
