#include "common/package/power.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::package {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kRuns = {"result_1", "result_2", "result_3"};

std::vector<PowerFolder> Folders(std::vector<std::vector<std::string>> files) {
  std::vector<PowerFolder> folders;
  for (size_t i = 0; i < files.size(); ++i)
    folders.push_back({kRuns[i], std::move(files[i])});
  return folders;
}

std::vector<std::string> RulesOf(const PowerReport& report) {
  std::vector<std::string> rules;
  for (const rules::Finding& finding : report.findings)
    rules.push_back(finding.rule_id);
  return rules;
}

TEST(PowerTest, EqualFoldersPass) {
  const std::vector<std::string> files = {"node_0.txt", "node_1.txt", "sw_0.txt"};
  const PowerReport report = CheckPower(kRuns, Folders({files, files, files}));
  EXPECT_THAT(report.failed_runs, IsEmpty());
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_FALSE(report.is_fatal);
}

TEST(PowerTest, ARunWithoutItsFolderFails) {
  const PowerReport report = CheckPower(kRuns, Folders({{"node_0.txt"}, {"node_0.txt"}}));
  EXPECT_THAT(report.failed_runs, ElementsAre("result_3"));
  EXPECT_THAT(RulesOf(report), ElementsAre("R-PWR-001"));
}

TEST(PowerTest, NumbersGoFromZero) {
  for (const char* odd : {"node_1.txt", "node_-1.txt", "node_99999999999999999999.txt"}) {
    const PowerReport report = CheckPower(kRuns, Folders({{"node_0.txt"}, {odd}, {"node_0.txt"}}));
    EXPECT_THAT(report.failed_runs, ElementsAre("result_2")) << odd;
    EXPECT_FALSE(report.is_fatal);
  }
}

TEST(PowerTest, RepeatedNumbersAreOnlyAWarning) {
  const std::vector<std::string> files = {"node_0.csv", "node_0.txt"};
  const PowerReport report = CheckPower(kRuns, Folders({files, files, files}));
  EXPECT_THAT(report.failed_runs, IsEmpty());
  EXPECT_THAT(RulesOf(report), ElementsAre("R-PWR-005", "R-PWR-005", "R-PWR-005"));
}

TEST(PowerTest, EveryRunHasAsMany) {
  const PowerReport report =
      CheckPower(kRuns, Folders({{"node_0.txt"}, {"node_0.txt"}, {"node_0.txt", "node_1.txt"}}));
  EXPECT_THAT(report.failed_runs, ElementsAre("result_3"));
  EXPECT_THAT(RulesOf(report), ElementsAre("R-PWR-003"));
}

TEST(PowerTest, TheOfficialCheckerBlamesByPosition) {
  std::vector<PowerFolder> folders = Folders({{}, {"node_0.txt"}, {"node_0.txt", "node_1.txt"}});
  folders.erase(folders.begin());  // result_1 has none; the odd one is second of two
  const PowerReport report = CheckPower(kRuns, folders);
  EXPECT_THAT(report.failed_runs, ElementsAre("result_1", "result_2"));
}

TEST(PowerTest, FilesWithoutANumberAreFatal) {
  EXPECT_TRUE(CheckPower(kRuns, Folders({{"node.txt"}, {}, {}})).is_fatal);
  EXPECT_TRUE(CheckPower(kRuns, Folders({{"sw_x.txt"}, {}, {}})).is_fatal);
  EXPECT_TRUE(CheckPower(kRuns, {}).is_fatal) << "no folder of any run";
}

}  // namespace
}  // namespace assay::package
