#include "common/package/package_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/package/sample_package.h"
#include "tests/support/status_matchers.h"

namespace assay::package {
namespace {

using ::assay::testing::Errors;
using ::assay::testing::kStrong;
using ::assay::testing::kStrongLabel;
using ::assay::testing::PackageLog;
using ::assay::testing::SamplePackage;
using ::assay::testing::StatusIs;
using ::assay::testing::Warnings;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kWeak[] = "results/sys/weak/cosmoflow";

// A run that misses the target, and is no damaged log.
std::string MissedLog(int seed) {
  return PackageLog(seed).Set("eval_error", "0.3").Text();
}

TEST(PackageCheckTest, ACompletePackagePasses) {
  const SamplePackage package;
  for (const char* name :
       {"README.md", "setup.sh", "init_datasets.sh", "run_and_time.sh", "sys_assay.json"})
    package.Write(absl::StrCat("benchmarks/cosmoflow/sys/", name), "text");

  const OrganizationReport report = package.Check();

  EXPECT_THAT(Errors(report), IsEmpty());
  EXPECT_THAT(Warnings(report), IsEmpty());
  EXPECT_TRUE(report.pass());
  EXPECT_EQ(report.organization, "ORG");
  ASSERT_THAT(report.directories, SizeIs(1));
  const DirectoryReport& directory = report.directories[0];
  EXPECT_EQ(directory.path, kStrongLabel);
  EXPECT_EQ(directory.division, "closed");
  EXPECT_THAT(directory.runs, SizeIs(10));
  EXPECT_TRUE(directory.runs[0].pass && directory.runs[0].reached_target);
  EXPECT_EQ(report.run_count(), 10);
}

TEST(PackageCheckTest, OneOrganisationOrAWholeRepository) {
  const SamplePackage package;
  const rules::RuleSet& rules = *rules::FindRuleSet("hpc-3.0");
  CHECK_OK(MakeDirectories(package.Path("../OTHER/results")));
  CHECK_OK(MakeDirectories(package.Path("../.git/results")));
  CHECK_OK(MakeDirectories(package.Path("../docs")));

  const auto one = CheckPackages(package.Path("."), rules);
  ASSERT_TRUE(one.ok());
  ASSERT_THAT(*one, SizeIs(1));
  EXPECT_EQ((*one)[0].organization, "ORG");
  EXPECT_TRUE((*one)[0].pass());

  const auto all = CheckPackages(package.repository(), rules);
  ASSERT_TRUE(all.ok());
  ASSERT_THAT(*all, SizeIs(2));
  EXPECT_EQ((*all)[1].organization, "OTHER");
  EXPECT_THAT(Errors((*all)[1]), ElementsAre("R-PKG-002 OTHER/results"));

  EXPECT_THAT(CheckPackages(package.Path("../docs"), rules), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(CheckPackages(package.Path("../absent"), rules),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(PackageCheckTest, StrongSetsHaveExactlyTheirNumberOfRuns) {
  const SamplePackage package;
  package.Write(SamplePackage::Result(kStrong, 10), PackageLog(11).Text());
  EXPECT_THAT(Errors(package.Check()), ElementsAre(absl::StrCat("R-PKG-006 ", kStrongLabel)));

  CHECK_OK(RemoveTree(package.Path(SamplePackage::Result(kStrong, 10))));
  CHECK_OK(RemoveTree(package.Path(SamplePackage::Result(kStrong, 9))));
  EXPECT_THAT(Errors(package.Check()), ElementsAre(absl::StrCat("R-PKG-006 ", kStrongLabel)));
}

TEST(PackageCheckTest, WeakSetsHaveAtLeastTheirNumberOfRuns) {
  const SamplePackage package;
  package.AddRuns(kWeak, 9);
  EXPECT_THAT(Errors(package.Check()), ElementsAre("R-PKG-007 ORG/results/sys/weak/cosmoflow"));

  package.AddRuns(kWeak, 12);
  EXPECT_THAT(Errors(package.Check()), IsEmpty());
}

TEST(PackageCheckTest, ThroughputIsNeverAlone) {
  const SamplePackage package;
  CHECK_OK(RemoveTree(package.Path("results")));
  package.AddRuns(kWeak, 10);

  const OrganizationReport report = package.Check();

  EXPECT_TRUE(report.pass()) << "the official checker does not look";
  EXPECT_THAT(Warnings(report), Contains("R-PKG-020 ORG/results/sys/weak/cosmoflow"));
}

TEST(PackageCheckTest, OneRunMayFail) {
  const SamplePackage package;
  package.Write(SamplePackage::Result(kStrong, 3), MissedLog(4));

  const OrganizationReport one = package.Check();

  EXPECT_THAT(Errors(one), IsEmpty());
  EXPECT_THAT(Warnings(one), Contains(absl::StrCat("R-PKG-008 ", kStrongLabel)));
  EXPECT_THAT(Warnings(one), Contains(absl::StrCat("R-QUA-001 ", kStrongLabel, "/result_3.txt")));
  EXPECT_FALSE(one.directories[0].runs[3].pass);

  package.Write(SamplePackage::Result(kStrong, 7), MissedLog(8));
  const OrganizationReport two = package.Check();
  EXPECT_THAT(Errors(two), Contains(absl::StrCat("R-PKG-009 ", kStrongLabel)));
  EXPECT_THAT(Errors(two), Contains(absl::StrCat("R-QUA-001 ", kStrongLabel, "/result_3.txt")));
}

TEST(PackageCheckTest, ALogThatKillsTheReferenceCheckerIsNotForgiven) {
  const SamplePackage package;
  package.Write(SamplePackage::Result(kStrong, 3), PackageLog(4).Text() + ":::MLLOG [1]\n");

  EXPECT_THAT(Errors(package.Check()),
              Contains(absl::StrCat("R-PKG-010 ", kStrongLabel, "/result_3.txt")));
}

TEST(PackageCheckTest, EverySystemWithResultsIsDescribed) {
  const SamplePackage package;
  CHECK_OK(RemoveTree(package.Path("systems/sys.json")));
  package.Describe("unused", "closed");

  const OrganizationReport report = package.Check();

  EXPECT_THAT(Errors(report), ElementsAre("R-PKG-004 ORG/systems/sys.json"));
  EXPECT_THAT(Warnings(report), Contains("R-DESC-010 ORG/systems/unused.json"));
}

TEST(PackageCheckTest, DescriptionsCountForTheVerdict) {
  const SamplePackage package;
  package.Write("systems/sys.json", "{\"division\": \"closed\"}");
  EXPECT_EQ(package.Check().error_count(), 32);
  package.Write("systems/sys.json", "{\"division\": ");
  EXPECT_THAT(Errors(package.Check()),
              ElementsAre("R-DESC-001 ORG/systems/sys.json", "R-PKG-004 ORG/systems/sys.json"));
}

TEST(PackageCheckTest, TheLevelBetweenSystemAndBenchmarkIsStrongOrWeak) {
  const SamplePackage package;
  package.AddRuns("results/sys/medium/cosmoflow", 10);
  package.AddRuns("results/sys/cosmoflow", 10);
  package.AddRuns("results/sys/strong/cosmoflow/more", 1);

  const OrganizationReport report = package.Check();

  EXPECT_THAT(Errors(report), ElementsAre("R-PKG-003 ORG/results/sys/cosmoflow",
                                          "R-PKG-003 ORG/results/sys/medium"));
  EXPECT_THAT(Warnings(report), Contains(absl::StrCat("R-PKG-022 ", kStrongLabel, "/more")));
}

TEST(PackageCheckTest, RoundV07HasNoSuchLevel) {
  const SamplePackage package;
  CHECK_OK(RemoveTree(package.Path("results")));
  package.AddRuns("results/sys/cosmoflow", 10);

  EXPECT_THAT(Errors(package.Check("v0.7")), IsEmpty());
  EXPECT_THAT(Errors(package.Check("v1.0")), ElementsAre("R-PKG-003 ORG/results/sys/cosmoflow"));

  package.AddRuns(kStrong, 10);
  EXPECT_THAT(Errors(package.Check("v0.7")), ElementsAre("R-PKG-003 ORG/results/sys/strong"));
}

TEST(PackageCheckTest, OtherBenchmarksAreSkipped) {
  const SamplePackage package;
  package.AddRuns("results/sys/strong/openfold", 1);

  EXPECT_THAT(Errors(package.Check("hpc-3.0")), Not(IsEmpty()));
  const OrganizationReport report = package.Check("hpc-2.0");
  EXPECT_THAT(Errors(report), IsEmpty());
  EXPECT_THAT(Warnings(report), Contains("R-PKG-005 ORG/results/sys/strong/openfold"));
}

TEST(PackageCheckTest, ClosedSetsNeedSeeds) {
  const SamplePackage package;
  package.Write(SamplePackage::Result(kStrong, 5), PackageLog(1).Text());
  EXPECT_THAT(Errors(package.Check()),
              ElementsAre(absl::StrCat("R-SEED-002 ", kStrongLabel, "/result_5.txt")));

  package.Write(SamplePackage::Result(kStrong, 5), PackageLog(1).Remove("seed").Text());
  EXPECT_THAT(Errors(package.Check()),
              ElementsAre(absl::StrCat("R-SEED-001 ", kStrongLabel, "/result_5.txt")));

  package.Describe("sys", "open");
  EXPECT_THAT(Errors(package.Check()), IsEmpty());
  EXPECT_THAT(Warnings(package.Check()),
              Contains(absl::StrCat("R-PKG-019 ", kStrongLabel, "/result_0.txt")));
}

TEST(PackageCheckTest, SeedsCanBeBypassedInThreePlaces) {
  const SamplePackage package;
  package.Write(SamplePackage::Result(kStrong, 5), PackageLog(1).Text());
  for (const char* folder : {"results/sys", kStrong}) {
    const std::string params = absl::StrCat(folder, "/package_checker_params");
    package.Write(params, "seed-checker-bypass");
    const OrganizationReport report = package.Check();
    EXPECT_THAT(Errors(report), IsEmpty()) << folder;
    EXPECT_TRUE(report.directories[0].is_seed_check_bypassed);
    package.Write(params, "seed-checker-bypass\n");
    EXPECT_THAT(Errors(package.Check()), SizeIs(1)) << folder;
    EXPECT_THAT(Warnings(package.Check()), Contains(absl::StrCat("R-PKG-014 ORG/", params)));
    package.Write(params, "\xFF");
    EXPECT_THAT(Errors(package.Check()), Contains(absl::StrCat("R-PKG-017 ORG/", params)));
    CHECK_OK(RemoveTree(package.Path(params)));
  }
  EXPECT_THAT(Errors(package.Check("hpc-3.0", {.bypasses_seeds = true})), IsEmpty());
}

TEST(PackageCheckTest, FasterConvergenceThanTheReferenceFails) {
  const SamplePackage package;
  for (int i = 0; i < 10; ++i)
    package.Write(SamplePackage::Result(kStrong, i),
                  PackageLog(i + 1).SetMetadata("eval_error", "{\"epoch_num\": 2}").Text());

  const OrganizationReport report = package.Check();

  EXPECT_THAT(Errors(report), ElementsAre(absl::StrCat("R-RCP-001 ", kStrongLabel)));
  EXPECT_THAT(Errors(package.Check("hpc-3.0", {.bypasses_rcp = true})), IsEmpty());
  package.Describe("sys", "open");
  EXPECT_THAT(Errors(package.Check()), IsEmpty());
}

TEST(PackageCheckTest, AScalingFactorIsComparedWithTheLogs) {
  const SamplePackage package;
  const std::string path = absl::StrCat(kStrong, "/scaling.json");
  package.Write(path, "{\"scaling_factor\": 1.25}");
  EXPECT_THAT(Warnings(package.Check()), Contains(absl::StrCat("R-PKG-023 ORG/", path)));
  package.Write(path, "{\"scaling_factor\": 1}");
  EXPECT_THAT(Warnings(package.Check()), Not(Contains(absl::StrCat("R-PKG-023 ORG/", path))));
}

TEST(PackageCheckTest, PrunedRunsAreJudgedForTheReaderOnly) {
  const SamplePackage package;
  package.AddRuns(kWeak, 10);
  package.Write(absl::StrCat(kWeak, "/pruned_results/result_77.txt"), MissedLog(77));
  package.Write(absl::StrCat(kWeak, "/scaling.json"), "{}");

  const OrganizationReport report = package.Check();

  EXPECT_THAT(Errors(report), IsEmpty());
  EXPECT_THAT(Warnings(report),
              Contains("R-PKG-012 ORG/results/sys/weak/cosmoflow/pruned_results/result_77.txt"));
  EXPECT_THAT(Warnings(report), Contains("R-PKG-018 ORG/results/sys/weak/cosmoflow/scaling.json"));
  ASSERT_THAT(report.directories, SizeIs(2));
  EXPECT_THAT(report.directories[1].pruned, SizeIs(1));
}

TEST(PackageCheckTest, PowerOfEveryRunOrOfNone) {
  const SamplePackage package;
  const std::string power = absl::StrCat(kStrong, "/power/");
  for (int i = 0; i < 8; ++i)
    package.Write(absl::StrCat(power, "result_", i, "/node_0.txt"), "");
  EXPECT_THAT(Errors(package.Check()), Contains(absl::StrCat("R-PKG-009 ", kStrongLabel)));

  package.Write(absl::StrCat(power, "result_8/node_0.txt"), "");
  const OrganizationReport one = package.Check();
  EXPECT_THAT(Errors(one), IsEmpty()) << "one run without power is forgiven like a failed run";
  EXPECT_THAT(Warnings(one), Contains(absl::StrCat("R-PWR-001 ", kStrongLabel, "/power")));

  package.Write(absl::StrCat(power, "result_9/node.txt"), "");
  EXPECT_THAT(Errors(package.Check()),
              Contains(absl::StrCat("R-PWR-004 ", kStrongLabel, "/power")));
}

}  // namespace
}  // namespace assay::package
