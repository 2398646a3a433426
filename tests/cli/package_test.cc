#include "cli/package/package.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "tests/cli/invocation.h"
#include "tests/package/sample_package.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::SamplePackage;
using ::testing::SizeIs;
using ::testing::StartsWith;

class PackageCommandTest : public ::testing::Test {
 protected:
  ExitStatus Check(const std::string& more = "", const std::string& round = "hpc-3.0") {
    return run_.Run(
        absl::StrCat("package check --round ", round, " ", package_.repository(), " ", more));
  }
  void MakeOneRunTooFew() {
    CHECK_OK(RemoveTree(package_.Path("results/sys/strong/cosmoflow/result_3.txt")));
  }

  const SamplePackage package_;
  testing::Invocation run_;
};

TEST_F(PackageCommandTest, PrintsFindingsLikeACompilerAndALineForEachOrganisation) {
  EXPECT_EQ(Check(), ExitStatus::kDone) << run_.out;
  std::vector<std::string> lines = absl::StrSplit(run_.out, '\n', absl::SkipEmpty());
  EXPECT_THAT(lines.back(), HasSubstr("ORG: 1 directory, 10 runs, 0 errors, 1 warning (hpc-3.0.0"));

  MakeOneRunTooFew();
  EXPECT_EQ(Check(), ExitStatus::kRuleViolation);
  EXPECT_THAT(run_.out, HasSubstr("ORG/results/sys/strong/cosmoflow: error R-PKG-006: expected "
                                  "exactly 10 result files, found 9 result files"));
  EXPECT_THAT(run_.out, HasSubstr("; fix: "));
  EXPECT_EQ(Check("--quiet"), ExitStatus::kRuleViolation);
  EXPECT_THAT(run_.out, Not(HasSubstr("warning R-")));
}

TEST_F(PackageCommandTest, TheSameInAPipe) {
  EXPECT_EQ(Check("-o plain"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("ORG: 1 directory"));
}

TEST_F(PackageCommandTest, JsonHasOneObjectForEachOrganisation) {
  MakeOneRunTooFew();
  CHECK_OK(MakeDirectories(package_.Path("../EMPTY/results")));

  EXPECT_EQ(Check("--json"), ExitStatus::kRuleViolation);

  const nlohmann::json json = nlohmann::json::parse(run_.out, nullptr, false);
  ASSERT_THAT(json["items"], SizeIs(2));
  EXPECT_EQ(json["items"][0]["org"], "EMPTY");
  const nlohmann::json& organization = json["items"][1];
  EXPECT_EQ(organization["org"], "ORG");
  EXPECT_EQ(organization["verdict"], "fail");
  EXPECT_EQ(organization["errors"], 1);
  EXPECT_EQ(organization["warnings"], 1);
  EXPECT_EQ(organization["round"], "hpc-3.0.0");
  ASSERT_THAT(organization["directories"], SizeIs(1));
  const nlohmann::json& directory = organization["directories"][0];
  EXPECT_EQ(directory["system"], "sys");
  EXPECT_EQ(directory["scaling"], "strong");
  EXPECT_EQ(directory["benchmark"], "cosmoflow");
  EXPECT_EQ(directory["verdict"], "fail");
  EXPECT_THAT(directory["runs"], SizeIs(9));
  EXPECT_EQ(directory["runs"][0]["verdict"], "ok");
  EXPECT_EQ(directory["findings"][0]["rule"], "R-PKG-006");
  EXPECT_EQ(directory["findings"][0]["severity"], "error");
  EXPECT_EQ(organization["repository"]["verdict"], "ok");
}

TEST_F(PackageCommandTest, NdjsonHasOneLineForEachOrganisation) {
  CHECK_OK(MakeDirectories(package_.Path("../EMPTY/results")));
  EXPECT_EQ(Check("-o ndjson"), ExitStatus::kRuleViolation);
  const std::vector<std::string> lines = absl::StrSplit(run_.out, '\n', absl::SkipEmpty());
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[1], StartsWith("{"));
}

TEST_F(PackageCommandTest, JsonIsValidWhateverTheNames) {
  package_.Write("results/sys/strong/cosmoflow/\xFF\x1b[31m", "");
  EXPECT_EQ(Check("--json"), ExitStatus::kDone);
  EXPECT_FALSE(nlohmann::json::parse(run_.out, nullptr, false).is_discarded());
}

TEST_F(PackageCommandTest, BypassesWorkAsInTheFiles) {
  package_.Write("results/sys/strong/cosmoflow/result_3.txt", testing::PackageLog(1).Text());
  EXPECT_EQ(Check(), ExitStatus::kRuleViolation);
  EXPECT_EQ(Check("--seed-checker-bypass"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("warning R-PKG-015"));
}

TEST_F(PackageCommandTest, WhatIsNoPackageIsNotFound) {
  EXPECT_EQ(run_.Run("package check --round hpc-3.0 nowhere"), ExitStatus::kNotFound);
  CHECK_OK(MakeDirectories(run_.home.Path("empty")));
  EXPECT_EQ(run_.Run("package check --round hpc-3.0 empty"), ExitStatus::kNotFound);
  EXPECT_THAT(run_.err, HasSubstr("holds results or systems"));
  EXPECT_EQ(Check("", "hpc-9.0"), ExitStatus::kNotFound);
}

TEST_F(PackageCommandTest, ItsRulesAreExplained) {
  EXPECT_EQ(run_.Run("rules explain r-pkg-009"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("at most one run that does not comply"));
  EXPECT_EQ(run_.Run("rules explain R-PKG-099"), ExitStatus::kNotFound);
}

}  // namespace
}  // namespace assay
