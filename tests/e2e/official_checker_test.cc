// What a run of the service logs, and the package that it exports, satisfy the checkers that
// MLCommons publishes on PyPI.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "common/sha256.h"
#include "tests/e2e/official_package.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

// The full network of the round on two nodes; it reaches the target in about four epochs.
SubmissionText OfficialRound() {
  return {.round = "hpc-3.0.0", .dataset = "beacons", .epochs_max = 8, .more = ""};
}

// The first run of the entry once it has ended; the others need not be waited for.
Json FirstRun(const Site& site) {
  const Outcome followed = site.Assay({"logs", "r-1", "--follow", "--timeout", "8m"});
  EXPECT_EQ(followed.exit_code, 0) << followed.err;
  return site.AssayJson({"run", "show", "r-1"});
}

TEST(OfficialCheckerTest, AcceptsAClosedCosmoflowRunOfTheService) {
  Site site;
  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;

  const Coordinator coordinator(&site);
  ProvideBeacons(site, "beacons", 512, 64);
  const std::string file = WriteSubmission(site, "closed.toml", OfficialRound());
  const Outcome submitted = site.Assay({"submit", file});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();

  const Json run = FirstRun(site);
  EXPECT_EQ(run["state"], "succeeded") << run;
  EXPECT_EQ(run["converged"], true) << run;
  EXPECT_EQ(run["compliant"], true) << run;
  EXPECT_LE(run["quality"], 0.124) << run;
  const Outcome cancelled = site.Assay({"cancel", "@last", "--reason", "one run is enough"});
  EXPECT_EQ(cancelled.exit_code, 0) << cancelled.Text();

  const Outcome logs = site.Assay({"logs", "r-1"});
  EXPECT_EQ(Sha256Hex(logs.out), ResultArtifact(run)["sha256"]);
  WriteFile(site.Path("result_0.txt"), logs.out);
  const Outcome verdict =
      site.RunProgram({python, "-m", "mlperf_logging.compliance_checker", "--usage", "hpc",
                       "--ruleset", "3.0.0", site.Path("result_0.txt")});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.Text() << logs.out;
  EXPECT_THAT(absl::StrCat(verdict.out, verdict.err), HasSubstr("SUCCESS"));
}

TEST(OfficialCheckerTest, RejectsALogWithoutItsEnd) {
  // So that the acceptance above means something.
  const Site site;
  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;
  WriteFile(site.Path("result_0.txt"),
            R"(:::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", )"
            R"("key": "submission_benchmark", "value": "cosmoflow", "metadata": {}})"
            "\n");
  const Outcome verdict =
      site.RunProgram({python, "-m", "mlperf_logging.compliance_checker", "--usage", "hpc",
                       "--ruleset", "3.0.0", site.Path("result_0.txt")});
  EXPECT_NE(verdict.exit_code, 0) << verdict.Text();
}

// Its numbers are in the package, and disturb nobody.
constexpr char kQuickPreflight[] =
    R"(launcher { kind: "local" cores_per_worker: 1 worker_count: 2 }
preflight {
  checks { check: "quiet" policy: OFF }
  checks { check: "memory" policy: OFF }
  checks { check: "compute" policy: OFF }
  checks { check: "dataset-disk" policy: OFF }
  checks { check: "stage-disk" policy: OFF }
})";

// An open entry of a small network, because ten runs of the full one take hours.
TEST(OfficialCheckerTest, AcceptsAnExportedPackage) {
  Site site;
  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;

  const Coordinator coordinator(&site, kQuickPreflight);
  ProvideBeacons(site, "small", 256, 32);
  const SubmissionText entry = {.round = "hpc-3.0.0", .epochs_max = 40};
  const std::string file = site.Path("open.toml");
  WriteFile(file, absl::StrReplaceAll(entry.ToString(), {{"\"closed\"", "\"open\""}}));
  const Outcome submitted = site.Assay({"submit", file, "--wait"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
  const Outcome exported = site.Assay({"entry", "export", "@last", "package"});
  ASSERT_EQ(exported.exit_code, 0) << exported.Text();

  const std::string package = site.Path("package/Example");
  EXPECT_TRUE(FileExists(
      JoinPath(package, "benchmarks/cosmoflow/this-host/preflight/result_1/preflight_1.json")));
  EXPECT_TRUE(BothAccept(site, python, package));

  // As closed it is also judged for its seeds and its convergence.
  const std::string description = JoinPath(package, "systems/this-host.json");
  const std::string text = ReadFile(description).value_or("");
  WriteFile(description, absl::StrReplaceAll(text, {{"\"open\"", "\"closed\""}}));
  BothAccept(site, python, package);
  WriteFile(description, text);

  // One run without its end is forgiven, two are not, nor is one run too few.
  const std::string results = JoinPath(package, "results/this-host/strong/cosmoflow");
  WriteFile(JoinPath(results, "result_1.txt"), "");
  EXPECT_TRUE(BothAccept(site, python, package));
  WriteFile(JoinPath(results, "result_2.txt"), "");
  EXPECT_FALSE(BothAccept(site, python, package));
  CHECK_OK(RemoveTree(JoinPath(results, "result_2.txt")));
  EXPECT_FALSE(BothAccept(site, python, package));
}

}  // namespace
}  // namespace assay::testing
