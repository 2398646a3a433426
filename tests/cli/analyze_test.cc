// assay analyze on the published round v0.7, cell by cell as the paper prints its tables, and on
// what is not there.

#include "cli/analyze/analyze.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"
#include "tests/rules/oracle.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::OracleDir;
using ::testing::StartsWith;

class AnalyzeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!testing::HasOracle()) return;
    tree_ = new testing::TempDir;
    testing::Unpack("hpc_results_v0.7.tar.xz", tree_->path());
  }
  static void TearDownTestSuite() { delete tree_; }
  void SetUp() override {
    REQUIRE_ORACLE();
    run_.env.width = 200;
  }

  ExitStatus Analyze(const std::string& what, const std::string& more = "") {
    return run_.Run(absl::StrCat("analyze ", what, " ", tree_->Path("hpc_results_v0.7"),
                                 " --round v0.7 ", more));
  }
  // Runs it for a program.
  nlohmann::json Items(const std::string& what, const std::string& more = "") {
    EXPECT_EQ(Analyze(what, more + " --json"), ExitStatus::kDone) << run_.err;
    return nlohmann::json::parse(run_.out)["items"];
  }
  nlohmann::json Item(const nlohmann::json& items, const std::string& benchmark,
                      const std::string& label) {
    for (const nlohmann::json& item : items)
      if (item["benchmark"] == benchmark && item["label"] == label) return item;
    ADD_FAILURE() << "no item " << label;
    return {};
  }

  static testing::TempDir* tree_;
  testing::Invocation run_;
};

testing::TempDir* AnalyzeTest::tree_ = nullptr;

TEST_F(AnalyzeTest, Table5IsThePapers) {
  ASSERT_EQ(Analyze("staging", "-o table"), ExitStatus::kDone) << run_.err;

  // Staging time in minutes and the ratio, as printed.
  const std::pair<const char*, const char*> kRows[] = {
      {"16.49 ± 0.61", "2.55"}, {"0.76 ± 0.004", "2.27"}, {"0.20 ± 0.004", "1.56"},
      {"1.55 ± 0.11", "0.64"},  {"3.77 ± 0.51", "3.59"},  {"0.88 ± 0.08", "4.93"},
      {"2.20 ± 0.01", "5.55"},  {"1.96 ± 0.08", "5.45"}};
  for (const auto& [staging, ratio] : kRows)
    EXPECT_THAT(run_.out, AllOf(HasSubstr(staging), HasSubstr(ratio)));
  EXPECT_THAT(run_.out, Not(HasSubstr("HAL-64"))) << "its logs have no staging keys";
  EXPECT_THAT(run_.out, HasSubstr("Piz-Daint-128: its log has staging keys, but nothing was"));
}

TEST_F(AnalyzeTest, Table6IsThePapers) {
  ASSERT_EQ(Analyze("compute", "-o table"), ExitStatus::kDone) << run_.err;

  for (const char* cell :
       {"53.88 ± 4.85",   "12.07 ± 0.09", "21.17 ± 0.56",  "364.73 ± 32.77", "389.04",
        "100.00 ± 13.50", "26.59 ± 0.90", "151.88 ± 0.68", "34.42 ± 4.03",   "293.03",
        "98.50 ± 2.56",   "16.79 ± 0.23", "149.21 ± 0.28", "13.21 ± 0.35",   "450.96",
        "10.00 ± 0.00",   "3.56 ± 0.13",  "3.55 ± 0.18",   "139.29 ± 3.63",  "148.57",
        "24.00 ± 0.00",   "5.24 ± 0.02",  "7.37 ± 0.01",   "11.71 ± 0.02",   "199.78",
        "23.67 ± 1.15",   "5.57 ± 0.13",  "4.67 ± 0.82",   "10.49 ± 0.23",   "178.95"})
    EXPECT_THAT(run_.out, HasSubstr(cell));
  // What differs says why; Table 4 prints the same times.
  EXPECT_THAT(run_.out, HasSubstr("cosmoflow Fugaku-512: the paper prints 268.77"));
  EXPECT_THAT(run_.out, HasSubstr("deepcam Cori-GPU-64: the paper prints 148.58"));
  EXPECT_THAT(run_.out, HasSubstr("deepcam *ABCI-1024: the paper prints 1.16"));
}

TEST_F(AnalyzeTest, SharesOfTheTimeAreThoseOfFigure1) {
  const nlohmann::json items = Items("breakdown");

  ASSERT_EQ(items.size(), 15U);
  const nlohmann::json abci = Item(items, "deepcam", "ABCI-1024");
  EXPECT_NEAR(abci["staging_percent"], 18.78, 0.005);
  EXPECT_NEAR(abci["evaluation_percent"], 4.00, 0.005);
  EXPECT_NEAR(abci["training_percent"], 77.21, 0.005);
  EXPECT_NEAR(abci["estimated_staging_percent"], 18.78, 0.005);
  EXPECT_NEAR(Item(items, "deepcam", "Cori-GPU-64")["evaluation_percent"], 36.27, 0.005);
}

TEST_F(AnalyzeTest, EveryPrintedNumberStandsBesideTheComputedOne) {
  const nlohmann::json items = Items("published");

  EXPECT_EQ(items.size(), 124U);
  EXPECT_THAT(run_.err, HasSubstr("118 of 124 printed numbers"));
  for (const nlohmann::json& item : items)
    EXPECT_EQ(item["is_equal"], !item.contains("why")) << item;
  EXPECT_EQ(Items("published", "--differences").size(), 6U);
}

TEST_F(AnalyzeTest, ScalingJoinsEpochsAndThroughput) {
  const nlohmann::json items = Items("scaling", "--benchmark cosmoflow");

  ASSERT_EQ(items.size(), 12U);
  const nlohmann::json fugaku = Item(items, "cosmoflow", "*Fugaku-16384");
  EXPECT_EQ(fugaku["communication_intensity"], 4);
  EXPECT_NEAR(fugaku["epochs_per_hour"], 3600 / 10.720122, 1e-3);
  EXPECT_NEAR(fugaku["samples_per_second"], 327680 / 10.720122, 1e-2);
  EXPECT_NEAR(fugaku["compute_minutes"], 158 * 10.720122 / 60, 1e-4);
  EXPECT_NEAR(fugaku["steps"], 158 * 262144 / 4096.0, 1e-6);
}

TEST_F(AnalyzeTest, PredictsAMachineThatWasMeasuredToo) {
  // From 128 nodes of Piz Daint to 256: the paper finds 12 % less than expected, for a cache.
  ASSERT_EQ(Analyze("predict", "--system Piz-Daint-128 --batch 512 --epochs 113.125 --json"),
            ExitStatus::kDone)
      << run_.err;

  const nlohmann::json prediction = nlohmann::json::parse(run_.out);
  EXPECT_EQ(prediction["units"], 256);
  EXPECT_NEAR(1 - 327.0072 / prediction["minutes"].get<double>(), 0.119, 0.001);

  EXPECT_EQ(Analyze("predict", "--system Piz-Daint-128 --batch 512"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("measured by"));
  EXPECT_EQ(Analyze("predict", "--system Piz-Daint-128 --batch 4096"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("from 64 to 512"));
  EXPECT_EQ(Analyze("predict", "--system Piz-Daint-12 --batch 512"), ExitStatus::kNotFound);
  EXPECT_THAT(run_.err, HasSubstr("did you mean"));
}

TEST_F(AnalyzeTest, UtilisationKnowsThePublishedMachines) {
  const nlohmann::json items = Items("utilisation");

  const nlohmann::json abci = Item(items, "cosmoflow", "ABCI-512");
  EXPECT_EQ(abci["peak_tflops_per_unit"], 125);
  // Epochs * samples * FLOPs / time, by hand from the means of the runs: within the covariance.
  const double tflops = 100.0 * (262144 * 56.93e9 + 65536 * 20.41e9) / (34.339 * 60) / 1e12;
  EXPECT_NEAR(abci["tflops"].get<double>() / tflops, 1, 0.002);
  EXPECT_NEAR(abci["utilisation_percent"].get<double>(), tflops / 512 / 125 * 100, 0.01);
  EXPECT_EQ(Items("utilisation", "--peak-tflops 1000")[0]["peak_tflops_per_unit"], 1000);
}

TEST_F(AnalyzeTest, EpochsAreThoseOfABatchSize) {
  const nlohmann::json items = Items("epochs", "--benchmark cosmoflow --division closed");

  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[0]["batch_size"], 64);
  EXPECT_EQ(items[0]["run_count"], 24);
  EXPECT_NEAR(items[1]["epochs"], 70.25, 1e-9);
}

TEST_F(AnalyzeTest, FiguresHoldEveryEntry) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no gnuplot; apt-get install gnuplot-nox";
  const std::string svg = run_.home.Path("figure.svg");
  ASSERT_EQ(Analyze("breakdown", "--plot " + svg), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(ReadFile(svg).value_or(""), AllOf(HasSubstr("<svg"), HasSubstr("*Fugaku-16384"),
                                                HasSubstr("HAL-64"), HasSubstr("evaluation")));
  ASSERT_EQ(Analyze("scaling", "--benchmark cosmoflow --plot " + svg), ExitStatus::kDone)
      << run_.err;
  EXPECT_THAT(ReadFile(svg).value_or(""),
              AllOf(HasSubstr("*Fugaku-16384"), HasSubstr("optimizer steps to solution")));

  const std::string png = run_.home.Path("figure.png");
  ASSERT_EQ(Analyze("breakdown", "--plot " + png), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(ReadFile(png).value_or(""), StartsWith("\x89PNG"));
}

TEST_F(AnalyzeTest, SaysWhyThereIsNoFigure) {
  EXPECT_EQ(Analyze("scaling", "--plot f.svg"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("--benchmark"));
  EXPECT_EQ(Analyze("breakdown", "--plot f.gif"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr(".svg, .png or .pdf"));

  const std::string path = std::getenv("PATH");
  setenv("PATH", run_.home.Path("nothing").c_str(), 1);
  EXPECT_EQ(Analyze("breakdown", "--plot f.svg"), ExitStatus::kConflict);
  setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(run_.err, HasSubstr("apt-get install gnuplot-nox"));
}

// From Table 6: training throughput per GPU of 16.7866 on 2,048 and 26.5885 on 512.
TEST_F(AnalyzeTest, ScalingHasItsEfficiency) {
  const nlohmann::json items = Items("scaling");

  const nlohmann::json large = Item(items, "cosmoflow", "*ABCI-2048");
  EXPECT_NEAR(large["scaling_efficiency_percent"].get<double>(), 100 * 16.7866 / 26.5885, 0.01);
  EXPECT_EQ(large["scaling_base"], "ABCI-512");
  EXPECT_EQ(Item(items, "cosmoflow", "ABCI-512")["scaling_efficiency_percent"], 100);
  EXPECT_FALSE(Item(items, "cosmoflow", "HAL-64").contains("scaling_efficiency_percent"));
}

TEST_F(AnalyzeTest, AsciiTerminalsGetAscii) {
  run_.env.variables["LANG"] = "C";
  ASSERT_EQ(Analyze("staging", "-o table"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("16.49 +- 0.61"), Not(HasSubstr("±"))));
}

TEST(AnalyzeInputTest, SaysWhatIsMissing) {
  testing::FakeCoordinator coordinator;
  testing::Invocation run;
  coordinator.Start();
  run.env.variables["ASSAY_SOCKET"] = coordinator.socket_path();

  EXPECT_EQ(run.Run("analyze compute"), ExitStatus::kUsage);
  CHECK_OK(MakeDirectories(run.home.Path("empty")));
  EXPECT_EQ(run.Run("analyze compute empty"), ExitStatus::kUsage);
  EXPECT_THAT(run.err, HasSubstr("--round"));
  EXPECT_EQ(run.Run("analyze compute empty --round v0.7"), ExitStatus::kNotFound);
  EXPECT_EQ(run.Run("analyze compute e-99"), ExitStatus::kNotFound);
  EXPECT_EQ(run.Run("analyze compute e-1 empty --round v0.7"), ExitStatus::kUsage);
}

// Issue 16: analyze looked at all runs where the score is of a window of them.
TEST(AnalyzeInputTest, LooksAtTheRunsThatTheScoreIsOf) {
  testing::FakeCoordinator coordinator;
  testing::Invocation run;
  v1::Submission& entry = coordinator.entries.back();  // e-1 with three runs
  entry.set_required_run_count(3);
  entry.mutable_scoring()->set_counts("reached_target");
  v1::Run fourth = coordinator.runs.front();
  fourth.set_name("runs/r-9");
  fourth.set_number(4);
  fourth.set_run_stop_ms(fourth.run_start_ms() + 60'000);
  coordinator.runs.push_back(fourth);
  coordinator.Start();
  run.env.variables["ASSAY_SOCKET"] = coordinator.socket_path();

  ASSERT_EQ(run.Run("analyze breakdown e-1 --json"), ExitStatus::kDone) << run.err;

  const nlohmann::json item = nlohmann::json::parse(run.out)["items"][0];
  EXPECT_THAT(item["note"].get<std::string>(), HasSubstr("1 runs are outside of the window"));
}

// A facility's round trains a model of its own size.
TEST(AnalyzeInputTest, AFacilitysModelHasItsOwnFlops) {
  testing::Invocation run;
  run.Write("round/ORG/results/sys/strong/cosmoflow/result_1.txt", "nothing\n");
  const std::string round =
      absl::StrCat(std::filesystem::current_path().string(), "/deploy/rounds/cosmoflow-mini.toml");

  EXPECT_EQ(run.Run(absl::StrCat("analyze utilisation round --json --round ", round)),
            ExitStatus::kDone)
      << run.err;

  const nlohmann::json item = nlohmann::json::parse(run.out)["items"][0];
  // A quarter of the filters: 3.0015 GFLOP at 32 cubed would be too much.
  EXPECT_GT(item["train_gflop_per_sample"], 0.1);
  EXPECT_LT(item["train_gflop_per_sample"], 0.4);
}

TEST(AnalyzeInputTest, ReadsEntriesOfTheCoordinator) {
  testing::FakeCoordinator coordinator;
  testing::Invocation run;
  coordinator.Start();
  run.env.variables["ASSAY_SOCKET"] = coordinator.socket_path();

  EXPECT_EQ(run.Run("analyze breakdown e-1 --json"), ExitStatus::kDone) << run.err;

  // Its logs are one line of text: nothing is known, and that is said.
  const nlohmann::json item = nlohmann::json::parse(run.out)["items"][0];
  EXPECT_EQ(item["benchmark"], "cosmoflow");
  EXPECT_THAT(run.err, HasSubstr("cosmoflow-mini is not known here"));
  EXPECT_FALSE(item.contains("minutes"));
  EXPECT_THAT(item["note"].get<std::string>(), HasSubstr("run_start"));
}

}  // namespace
}  // namespace assay
