// Packages made to break the checker: each gives findings, and the check goes on.

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/package/results_tree.h"
#include "tests/package/sample_package.h"

namespace assay::package {
namespace {

using ::assay::testing::Errors;
using ::assay::testing::kStrong;
using ::assay::testing::kStrongLabel;
using ::assay::testing::SamplePackage;
using ::assay::testing::TempDir;
using ::assay::testing::Warnings;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class HostilePackageTest : public ::testing::Test {
 protected:
  std::string Run(int number) const {
    return package_.Path(SamplePackage::Result(kStrong, number));
  }
  static std::string Label(int number) { return SamplePackage::Result(kStrongLabel, number); }
  // Puts a link in the place of a run's log.
  void Link(const std::string& target, int number) {
    ASSERT_EQ(unlink(Run(number).c_str()), 0);
    ASSERT_EQ(symlink(target.c_str(), Run(number).c_str()), 0);
  }

  const SamplePackage package_;
};

TEST_F(HostilePackageTest, LinksOutOfTheTreeAreNotRead) {
  const TempDir outside;
  testing::WriteFile(outside.Path("log"), testing::PackageLog(1).Text());
  Link(outside.Path("log"), 0);
  Link("/etc/passwd", 1);
  Link("../../../../../../../../etc/passwd", 2);
  ASSERT_EQ(symlink(outside.path().c_str(), package_.Path("results/elsewhere").c_str()), 0);
  ASSERT_EQ(symlink("/etc/passwd", package_.Path("systems/elsewhere.json").c_str()), 0);

  const OrganizationReport report = package_.Check();

  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(Errors(report), Contains(absl::StrCat("R-PKG-011 ", Label(i))));
  EXPECT_THAT(Errors(report), Contains("R-PKG-011 ORG/results/elsewhere"));
  EXPECT_THAT(Errors(report), Contains("R-PKG-011 ORG/systems/elsewhere.json"));
  EXPECT_THAT(report.repository.findings, SizeIs(5));
  for (const PackageFinding& found : report.repository.findings)
    EXPECT_EQ(found.finding.found, "a link that leaves the tree") << found.path;
}

TEST_F(HostilePackageTest, LinksInTheTreeAreFollowedOnce) {
  Link("result_1.txt", 0);  // the same run twice
  ASSERT_EQ(symlink("..", package_.Path("results/sys/strong/loop").c_str()), 0);

  const OrganizationReport report = package_.Check();

  EXPECT_THAT(Errors(report), ElementsAre(absl::StrCat("R-SEED-002 ", Label(1))));
  EXPECT_THAT(Warnings(report), Contains("R-PKG-005 ORG/results/sys/strong/loop"));
}

TEST_F(HostilePackageTest, WhatIsNoFileIsNotOpened) {
  for (int i = 0; i < 4; ++i)
    ASSERT_EQ(unlink(Run(i).c_str()), 0);
  ASSERT_EQ(mkfifo(Run(0).c_str(), 0600), 0);
  ASSERT_EQ(mkdir(Run(1).c_str(), 0700), 0);
  ASSERT_EQ(symlink("nowhere", Run(2).c_str()), 0);
  ASSERT_EQ(symlink("result_3.txt", Run(3).c_str()), 0);

  const OrganizationReport report = package_.Check();

  for (int i = 0; i < 4; ++i)
    EXPECT_THAT(Errors(report), Contains(absl::StrCat("R-PKG-011 ", Label(i))));
  EXPECT_THAT(Errors(report), Not(Contains(HasSubstr("R-PKG-006")))) << "there are ten entries";
}

TEST_F(HostilePackageTest, HugeFilesAreNotRead) {
  ASSERT_EQ(truncate(Run(0).c_str(), kLogBytesMax + 1), 0);  // sparse
  package_.Write("systems/big.json", "");
  ASSERT_EQ(truncate(package_.Path("systems/big.json").c_str(), int64_t{1} << 40), 0);

  const OrganizationReport report = package_.Check();

  EXPECT_THAT(Errors(report), Contains(absl::StrCat("R-PKG-011 ", Label(0))));
  EXPECT_THAT(Errors(report), Contains("R-PKG-011 ORG/systems/big.json"));
  EXPECT_FALSE(report.repository.are_sizes_ok);
}

TEST_F(HostilePackageTest, DamagedContentsGiveFindings) {
  const std::string record =
      ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1, \"key\": \"seed\", \"metadata\": {}, "
      "\"value\": ";
  package_.Write(SamplePackage::Result(kStrong, 0), std::string(1000, '\0'));
  package_.Write(SamplePackage::Result(kStrong, 1), record + std::string(5000, '9') + "}\n");
  package_.Write(SamplePackage::Result(kStrong, 2), record + std::string(100000, '[') + "\n");
  package_.Write(SamplePackage::Result(kStrong, 3), "");
  package_.Write(SamplePackage::Result(kStrong, 4), "\xFF\xFE\x80 :::MLLOG \xFF\n");
  package_.Write("systems/deep.json", std::string(200000, '['));
  package_.Write("systems/long.json", "{\"number_of_nodes\": " + std::string(5000, '9') + "}");
  package_.Write("systems/nul.json", std::string(100, '\0'));
  package_.Write("systems/up.json", "{\"system_name\": \"../../../etc/passwd\"}");
  package_.Write(absl::StrCat(kStrong, "/scaling.json"), std::string(5000, '9'));

  const OrganizationReport report = package_.Check();

  EXPECT_THAT(Errors(report), Contains(absl::StrCat("R-PKG-009 ", kStrongLabel)));
  for (const char* name : {"deep", "long", "nul"})
    EXPECT_THAT(Errors(report), Contains(absl::StrCat("R-DESC-001 ORG/systems/", name, ".json")));
  EXPECT_THAT(Warnings(report), Contains("R-DESC-008 ORG/systems/up.json"));
  EXPECT_THAT(report.directories[0].runs, SizeIs(10));
}

TEST_F(HostilePackageTest, NamesAreShownHarmlessly) {
  const std::string bad = "a\x1b[31m\nORG: ok \xFF\xE2\x80\xAE";
  package_.Write(absl::StrCat(kStrong, "/", bad), "");
  package_.Write(absl::StrCat("results/", bad, "/strong/cosmoflow/result_1.txt"), "");
  package_.Write(absl::StrCat(kStrong, "/package_checker_params"), bad);

  const OrganizationReport report = package_.Check();

  std::vector<PackageFinding> all = report.findings;
  for (const DirectoryReport& directory : report.directories)
    all.insert(all.end(), directory.findings.begin(), directory.findings.end());
  all.insert(all.end(), report.repository.findings.begin(), report.repository.findings.end());
  EXPECT_FALSE(all.empty());
  for (const PackageFinding& found : all) {
    const std::string line = rules::Format(found.path, found.finding);
    for (const char* piece : {"\x1b", "\n", "\xFF", "\xE2\x80\xAE"})
      EXPECT_THAT(line, Not(HasSubstr(piece)));
  }
  EXPECT_THAT(report.directories[0].system, HasSubstr("\\x1b[31m\\x0aORG"));
}

TEST_F(HostilePackageTest, DeepAndWideTreesAreWalked) {
  std::string deep = "benchmarks";
  while (deep.size() < 3000)
    deep += "/" + std::string(100, 'd');
  package_.Write(deep + "/file", "");
  for (int i = 0; i < 300; ++i)
    package_.Write(absl::StrCat("benchmarks/.hidden", i), "");

  const OrganizationReport report = package_.Check();

  EXPECT_TRUE(report.pass());
  EXPECT_FALSE(report.repository.are_names_ok);
  EXPECT_EQ(report.repository.file_count, 312);
  EXPECT_THAT(report.repository.findings, SizeIs(41)) << "40 and how many more";
}

TEST_F(HostilePackageTest, ASetThatFailsAltogetherGetsItsReport) {
  for (int i = 0; i < 10; ++i)
    package_.Write(SamplePackage::Result(kStrong, i),
                   testing::PackageLog(i + 1).Remove("run_stop").Set("eval_error", "1").Text());

  const OrganizationReport report = package_.Check();

  EXPECT_FALSE(report.pass());
  ASSERT_THAT(report.directories, SizeIs(1));
  ASSERT_THAT(report.directories[0].runs, SizeIs(10));
  for (const RunReport& run : report.directories[0].runs)
    EXPECT_FALSE(run.pass);
  EXPECT_THAT(Errors(report), Contains(absl::StrCat("R-PKG-009 ", kStrongLabel)));
  EXPECT_THAT(Errors(report), Each(HasSubstr(kStrongLabel)));
}

}  // namespace
}  // namespace assay::package
