#include "common/analysis/flops.h"

#include <cmath>

#include "gtest/gtest.h"

#include "common/rules/registry.h"

namespace assay::analysis {
namespace {

// Counted layer by layer from the reference network, in units of 10^9; to the digits given.
TEST(FlopsTest, CosmoflowCostsWhatItsLayersDo) {
  EXPECT_NEAR(CosmoflowFlops({}).eval / 1e9, 68.862, 0.0005);
  EXPECT_NEAR(CosmoflowFlops({}).train / 1e9, 192.09, 0.005);
  EXPECT_NEAR(CosmoflowFlops({.edge = 64}).eval / 1e9, 8.608, 0.0005);
  EXPECT_NEAR(CosmoflowFlops({.edge = 64}).train / 1e9, 24.011, 0.0005);
  EXPECT_NEAR(CosmoflowFlops({.edge = 32}).eval / 1e9, 1.076, 0.0005);
  EXPECT_NEAR(CosmoflowFlops({.edge = 32}).train / 1e9, 3.0015, 0.00005);
  EXPECT_NEAR(CosmoflowFlops({.kernel = 2}).eval / 1e9, 20.410, 0.0005);
  EXPECT_NEAR(CosmoflowFlops({.kernel = 2}).train / 1e9, 56.93, 0.005);
}

TEST(FlopsTest, RoundsHaveTheirModels) {
  EXPECT_EQ(ReferenceFlops(*rules::FindRuleSet("hpc-0.7.0")->FindBenchmark("cosmoflow"))->train,
            CosmoflowFlops({.kernel = 2}).train);
  EXPECT_EQ(ReferenceFlops(*rules::FindRuleSet("hpc-3.0.0")->FindBenchmark("cosmoflow"))->train,
            CosmoflowFlops({}).train);
  EXPECT_EQ(ReferenceFlops(*rules::FindRuleSet("hpc-1.0.0")->FindBenchmark("deepcam"))->train,
            1963.97e9);
  EXPECT_FALSE(ReferenceFlops(*rules::FindRuleSet("hpc-1.0.0")->FindBenchmark("oc20")).has_value());
}

TEST(FlopsTest, KnowsThePeaksOfThePublishedSystems) {
  EXPECT_EQ(PeakOf("NVIDIA Tesla V100")->tflops, 125);
  EXPECT_EQ(PeakOf("NVIDIA P100-PCIE-16GB")->tflops, 18.7);
  EXPECT_EQ(PeakOf("NVIDIA Quadro RTX 5000")->tflops, 89.2);
  EXPECT_EQ(PeakOf("FUJITSU Processor A64FX")->precision, "fp32");
  EXPECT_EQ(PeakOf("Intel Xeon Phi Processor 7250")->tflops, 6.093);
  EXPECT_FALSE(PeakOf("").has_value());
  EXPECT_FALSE(PeakOf("abacus").has_value());
}

// One run of 100 s: 10 epochs of 1000 samples at 3 GFLOP and 10 evaluations of 200 at 1 GFLOP, so
// 32 TFLOP and 0.32 TFLOP/s.
Characteristics OneRun(double quality) {
  return Characterize({.benchmark = "cosmoflow",
                       .accelerators = 2,
                       .runs = {{.run_s = 100,
                                 .epochs = 10,
                                 .closed_epochs = 10,
                                 .epoch_s = 100,
                                 .evaluations = 10,
                                 .evaluation_s = 10,
                                 .train_samples = 1000,
                                 .eval_samples = 200,
                                 .quality = quality}}});
}
constexpr SampleFlops kFlops = {.train = 3e9, .eval = 1e9};

TEST(EfficiencyTest, DividesTheModelsWorkByTimeAndPeak) {
  const rules::Benchmark benchmark = {.lower_is_better = true, .target = 0.124};

  const auto result = EfficiencyOf(OneRun(0.124), kFlops, benchmark, 4.0, kQualitySensitivity);

  ASSERT_TRUE(result.has_value());
  EXPECT_DOUBLE_EQ(result->run_flops, 32e12);
  EXPECT_DOUBLE_EQ(result->tflops_per_s, 0.32);
  EXPECT_DOUBLE_EQ(result->quality_factor, 1);
  EXPECT_DOUBLE_EQ(result->valid_tflops_per_s, 0.32);
  EXPECT_DOUBLE_EQ(*result->utilisation, 0.32 / 8);
}

TEST(EfficiencyTest, AMissedTargetLowersValidFlops) {
  const rules::Benchmark lower = {.lower_is_better = true, .target = 0.124};
  const rules::Benchmark higher = {.lower_is_better = false, .target = 0.82};

  EXPECT_DOUBLE_EQ(EfficiencyOf(OneRun(0.248), kFlops, lower, {}, 5)->valid_tflops_per_s,
                   0.32 / 32);
  EXPECT_DOUBLE_EQ(EfficiencyOf(OneRun(0.41), kFlops, higher, {}, 5)->valid_tflops_per_s,
                   0.32 / 32);
  EXPECT_DOUBLE_EQ(EfficiencyOf(OneRun(0.41), kFlops, higher, {}, 1)->quality_factor, 0.5);
  EXPECT_EQ(EfficiencyOf(OneRun(0.41), kFlops, higher, {}, 5)->utilisation, std::nullopt);
}

TEST(EfficiencyTest, NeedsSamplesAndQuality) {
  const rules::Benchmark benchmark = {.lower_is_better = true, .target = 0.124};
  Characteristics entry = OneRun(0.124);
  entry.entry.runs[0].train_samples = std::nullopt;

  EXPECT_FALSE(EfficiencyOf(entry, kFlops, benchmark, 4.0, 5).has_value());
  EXPECT_FALSE(EfficiencyOf(Characterize({}), kFlops, benchmark, 4.0, 5).has_value());
}

}  // namespace
}  // namespace assay::analysis
