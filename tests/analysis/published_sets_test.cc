// The comparison of sets on published logs of round v0.7, beside what the MLPerf HPC paper says of
// the same sets (section 4.1: Piz Daint from 128 to 256 GPUs trains 461.01 / 327.01 = 1.41 times as
// fast; Fugaku's open entry is 3.38 times as fast as its closed one on 8,192 nodes).

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/analysis/run_times.h"
#include "common/analysis/set_comparison.h"
#include "common/file.h"
#include "common/rules/check.h"
#include "common/rules/registry.h"
#include "tests/rules/oracle.h"
#include "tests/support/temp_dir.h"

namespace assay::analysis {
namespace {

using ::testing::HasSubstr;

class PublishedSetsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!testing::HasOracle()) return;
    tree_ = new testing::TempDir;
    testing::Unpack("hpc_results_v0.7.tar.xz", tree_->path());
  }
  static void TearDownTestSuite() { delete tree_; }
  void SetUp() override { REQUIRE_ORACLE(); }

  // The set in a folder, by the part of its path that names it.
  static RunSet SetAt(const std::string& name, const std::string& path) {
    RunSet set = {.name = name};
    const std::string folder = tree_->Path("hpc_results_v0.7/" + path);
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().filename().string().rfind("result_", 0) != 0) continue;
      const std::string log = *ReadFile(file.path().string());
      const rules::CheckResult result = rules::Check(log, *rules::FindRuleSet("v0.7"));
      const RunTimes times = ReadRunTimes(log, result.facts);
      if (times.run_s && times.reached_target && times.epochs > 0)
        set.runs.push_back(
            {.minutes = *times.run_s / 60, .epochs = static_cast<double>(times.epochs)});
      else
        ++set.failed_count;
    }
    return set;
  }

  static testing::TempDir* tree_;
};
testing::TempDir* PublishedSetsTest::tree_ = nullptr;

TEST_F(PublishedSetsTest, PizDaint) {
  const SetComparison comparison =
      CompareSets(SetAt("128", "CSCS/results/daint_gpu_n128_tf2.2.0/cosmoflow"),
                  SetAt("256", "CSCS/results/daint_gpu_n256_tf2.2.0/cosmoflow"), {});

  // Table 4, whose selection is that of the score.
  EXPECT_NEAR(comparison.measures[0].a, 461.01, 0.005);
  EXPECT_NEAR(comparison.measures[0].b, 327.01, 0.005);
  EXPECT_TRUE(comparison.measures[0].is_significant());
  EXPECT_THAT(ComparisonSentence(comparison),
              HasSubstr("256 is 29 % faster than 128 (95 %: 20 to 37 %), because its epochs "
                        "are 0.44 times as long, although it needs 1.61 times as many"));
}

TEST_F(PublishedSetsTest, Fugaku) {
  const SetComparison comparison = CompareSets(
      SetAt("closed", "Fujitsu/results/fugaku_8192xA64FX_tensorflow_closed/cosmoflow"),
      SetAt("open", "Fujitsu/results/fugaku_16384xA64FX_tensorflow_open/cosmoflow"), {});

  EXPECT_NEAR(1 / comparison.measures[0].ratio, 3.3748, 0.0005);  // 3.38 of rounded cells
  EXPECT_THAT(ComparisonSentence(comparison), HasSubstr("open is 3.37 times as fast as closed"));
}

}  // namespace
}  // namespace assay::analysis
