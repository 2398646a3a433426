// The public reference implementation of DeepCAM, as it is published, under the service: what
// deploy/examples/reference does of it, on few maps. Its code is stored beside the tests' other
// material.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/official_checker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;

constexpr char kPython[] = "/usr/bin/python3";  // Debian's PyTorch and h5py: deploy/packages.txt

class ReferenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    const std::string python = ProvideOfficialChecker(&why_not);
    if (python.empty()) GTEST_SKIP() << why_not;
    if (site_.RunProgram({kPython, "-c", "import torch, h5py"}).exit_code != 0)
      GTEST_SKIP() << "PyTorch or h5py is not installed: deploy/packages.txt";
    const std::string archive = OraclePath("reference/mlcommons_hpc_deepcam_cosmoflow.tar.xz");
    if (archive.empty()) GTEST_SKIP() << "the reference's code is not here";
    ASSERT_EQ(site_.RunProgram({"tar", "-xf", archive}).exit_code, 0);
    // Of PyPI's environment this package alone: its numpy is not the one of Debian's PyTorch.
    const Outcome package =
        site_.RunProgram({python, "-c", "import mlperf_logging as m; print(*m.__path__)"});
    ASSERT_THAT(MakeDirectories(site_.Path("modules")), IsOk());
    std::filesystem::create_directory_symlink(std::string(absl::StripAsciiWhitespace(package.out)),
                                              site_.Path("modules/mlperf_logging"));
    Provide();
  }

  // The example's round and submission file, for two maps a rank and one pass over them.
  void Provide() {
    const std::string example = JoinPath(EXAMPLES, "reference");
    const std::string round = ReadFile(JoinPath(example, "deepcam-tiny.toml")).value_or("");
    WriteFile(site_.Path("share/assay/rounds/deepcam-tiny.toml"),
              absl::StrReplaceAll(
                  round, {{"equals = 4\n", "equals = 2\n"}, {"equals = 16\n", "equals = 4\n"}}));
    coordinator_.emplace(&site_);
    std::filesystem::create_directory(site_.Path("example"));
    std::filesystem::copy(JoinPath(example, "train"), site_.Path("example/train"));
    const std::string file = ReadFile(JoinPath(example, "deepcam-reference.toml")).value_or("");
    WriteFile(site_.Path("example/deepcam.toml"),
              absl::StrReplaceAll(
                  file, {{"\"python3\"", absl::StrCat("\"", kPython, "\"")},
                         {"epochs_max   = 40", "epochs_max = 1"},
                         {"\"/opt/mlcommons-hpc", absl::StrCat("\"", site_.Path("mlcommons-hpc"))},
                         {"env     = { ", absl::StrCat("env = { PYTHONPATH = \"",
                                                       site_.Path("modules"), "\", ")}}));
    const std::string maps = site_.Path("cam");
    const Outcome made =
        site_.Assay({"dataset", "generate", maps, "--benchmark", "deepcam", "--train", "4",
                     "--eval", "2", "--height", "48", "--width", "80"});
    ASSERT_EQ(made.exit_code, 0) << made.Text();
    ASSERT_EQ(site_.Assay({"dataset", "add", "cam", maps}).exit_code, 0);
  }

  Json FirstRun() {
    const Outcome submitted = site_.Assay({"submit", site_.Path("example/deepcam.toml")});
    EXPECT_EQ(submitted.exit_code, 0) << submitted.Text();
    site_.Assay({"logs", "r-1", "--follow", "--timeout", "5m"});
    const Json run = site_.AssayJson({"run", "show", "r-1"});
    site_.Assay({"cancel", "@last", "--reason", "one run is enough"});
    EXPECT_EQ(run["state"], "succeeded")
        << run << site_.Assay({"run", "files", "r-1", "program_0.out"}).out;
    return run;
  }
  static std::vector<std::string> Errors(const Json& run) {
    std::vector<std::string> errors;
    for (const Json& finding : run.value("findings", Json::array()))
      if (finding.value("severity", "error") == "error") errors.push_back(finding["rule"]);
    return errors;
  }

  Site site_;
  std::optional<Coordinator> coordinator_;
};

TEST_F(ReferenceTest, TheReferencesOwnCodeTrainsOnTwoNodesAndIsJudged) {
  const Json run = FirstRun();

  EXPECT_TRUE(run.contains("first_touch_us") || run.contains("observed_touch_us")) << run;
  EXPECT_NEAR(run["arrival_seconds"].get<double>(), run["seconds"].get<double>(), 1) << run;
  EXPECT_EQ(run["epochs"], 1) << run;
  // One pass may miss the target; nothing else is wrong with it.
  EXPECT_THAT(Errors(run), IsSubsetOf({"R-QUA-002"})) << run;
  EXPECT_THAT(site_.Assay({"logs", "r-1"}).out,
              AllOf(HasSubstr("deepCam/driver/validation.py"), HasSubstr("Example University")));
}

// As docs/adapters.md says of the published code: it opens a sample for its shape.
TEST_F(ReferenceTest, WhatItReadsBeforeTheClockRunsIsFound) {
  WriteFile(site_.Path("example/train/as_published.py"), R"(
import run_deepcam
run_deepcam.no_sample_before_the_clock = lambda *_: None
run_deepcam.main()
)");
  const std::string file = site_.Path("example/deepcam.toml");
  WriteFile(file, absl::StrReplaceAll(ReadFile(file).value_or(""),
                                      {{"/run_deepcam.py", "/as_published.py"}}));

  EXPECT_THAT(Errors(FirstRun()), Contains("R-TIM-001"));
}

}  // namespace
}  // namespace assay::testing
