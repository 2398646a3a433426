#include "common/package/results_tree.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/rules/registry.h"
#include "common/sha256.h"
#include "tests/rules/sample_log.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::package {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ResultsTreeTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, absl::string_view text) {
    const std::string path = dir_.Path(name);
    CHECK_OK(MakeDirectories(path.substr(0, path.rfind('/'))));
    testing::WriteFile(path, text);
  }
  std::vector<ResultFolder> Find() {
    absl::StatusOr<std::vector<ResultFolder>> folders = FindResultFolders(dir_.path());
    EXPECT_THAT(folders, IsOk());
    return folders.ok() ? *std::move(folders) : std::vector<ResultFolder>();
  }

  const TempDir dir_;
};

TEST_F(ResultsTreeTest, NamesThePartsOfAPath) {
  Write("ORG/results/sys+1.2/strong/oc20/result_1.txt", "");
  Write("ORG/results/old/cosmoflow/result_1.txt", "");

  const std::vector<ResultFolder> folders = Find();

  ASSERT_THAT(folders, SizeIs(2));
  EXPECT_EQ(folders[0].source_path, "ORG/results/old/cosmoflow");
  EXPECT_EQ(folders[0].scaling, "");
  EXPECT_EQ(folders[1].source_path, "ORG/results/sys+1.2/strong/oc20");
  EXPECT_EQ(folders[1].organization, "ORG");
  EXPECT_EQ(folders[1].system, "sys+1.2");
  EXPECT_EQ(folders[1].scaling, "strong");
  EXPECT_EQ(folders[1].benchmark, "oc20");
}

TEST_F(ResultsTreeTest, OrdersFilesByNumber) {
  const std::string base = "ORG/results/s/weak/deepcam/";
  for (const char* name : {"result_10.txt", "result_2.txt", "result_007.txt", "result_x.txt"})
    Write(base + name, "");

  EXPECT_THAT(Find()[0].files,
              ElementsAre("result_2.txt", "result_007.txt", "result_10.txt", "result_x.txt"));
}

TEST_F(ResultsTreeTest, OffersEverythingBesideTheResults) {
  const std::string base = "ORG/results/s/weak/cosmoflow/";
  Write(base + "result_1.txt", "");
  Write(base + "pruned_results/result_12.txt", "");
  Write(base + "pruned_results/result_3.txt", "");
  Write(base + "power/result_1/node_0.txt", "");
  Write(base + "power/result_1/sw_0.txt", "");
  Write(base + "scaling.json", "{\"scaling_factor\": 1.5}");
  Write(base + "package_checker_params", "rcp-bypass");
  Write(base + "readme.txt", "");
  Write("ORG/systems/s.json", "{\"division\": \"Closed\", \"number_of_nodes\": \"16\"}");

  const ResultFolder folder = Find()[0];

  EXPECT_THAT(folder.pruned_files, ElementsAre("result_3.txt", "result_12.txt"));
  EXPECT_TRUE(folder.has_power);
  ASSERT_THAT(folder.power, SizeIs(1));
  EXPECT_EQ(folder.power[0].run, "result_1");
  EXPECT_THAT(folder.power[0].files, ElementsAre("node_0.txt", "sw_0.txt"));
  EXPECT_EQ(folder.scaling_json, "{\"scaling_factor\": 1.5}");
  EXPECT_EQ(folder.checker_params, "rcp-bypass");
  EXPECT_THAT(folder.oddities, ElementsAre("unexpected file readme.txt"));
  EXPECT_THAT(folder.system_json, HasSubstr("number_of_nodes"));
  EXPECT_EQ(MemberText(folder.system_description, "number_of_nodes"), "16");
  EXPECT_EQ(MemberText(folder.system_description, "absent"), "");
}

TEST_F(ResultsTreeTest, LeavesAloneWhatLeavesTheTree) {
  const TempDir outside;
  testing::WriteFile(outside.Path("result_1.txt"), "");
  Write("ORG/results/s/strong/oc20/result_1.txt", "");
  const std::string folder = dir_.Path("ORG/results/s/strong/oc20/");
  ASSERT_EQ(symlink(outside.Path("result_1.txt").c_str(), (folder + "result_2.txt").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", (folder + "result_3.txt").c_str()), 0);
  ASSERT_EQ(symlink("..", (folder + "up").c_str()), 0);

  const std::vector<ResultFolder> folders = Find();

  ASSERT_THAT(folders, SizeIs(1));
  EXPECT_THAT(folders[0].files, ElementsAre("result_1.txt"));
  EXPECT_THAT(folders[0].oddities, Contains("result_2.txt is a link that leaves the tree"));
  EXPECT_THAT(folders[0].oddities, Contains("result_3.txt is a link that leads nowhere"));
}

TEST_F(ResultsTreeTest, DamagedDescriptionsAreOddities) {
  Write("ORG/results/a/strong/oc20/result_1.txt", "");
  Write("ORG/results/b/strong/oc20/result_1.txt", "");
  Write("ORG/systems/b.json", std::string(100000, '['));

  const std::vector<ResultFolder> folders = Find();

  ASSERT_THAT(folders, SizeIs(2));
  EXPECT_THAT(folders[0].oddities, ElementsAre("no system description systems/a.json"));
  EXPECT_THAT(folders[1].oddities, ElementsAre("systems/b.json is no JSON object"));
  EXPECT_TRUE(folders[1].system_description.is_null());
}

TEST_F(ResultsTreeTest, JudgesEveryFile) {
  const std::string log = testing::CosmoflowLog().Text();
  Write("ORG/results/s/strong/cosmoflow/result_1.txt", log);
  Write("ORG/results/s/strong/cosmoflow/result_2.txt", "free text\n");
  Write("ORG/systems/s.json", "{\"division\": \"OPEN\"}");

  const absl::StatusOr<JudgedFolder> judged =
      JudgeFolder(Find()[0], *rules::FindRuleSet("hpc-3.0.0"));

  ASSERT_THAT(judged, IsOk());
  ASSERT_THAT(judged->runs, SizeIs(2));
  EXPECT_TRUE(judged->runs[0].result.pass);
  EXPECT_EQ(judged->runs[0].sha256, Sha256Hex(log));
  EXPECT_FALSE(judged->runs[1].result.pass);
  EXPECT_EQ(judged->division(), "open");
}

TEST_F(ResultsTreeTest, AFileThatIsGoneIsAnError) {
  ResultFolder folder{.path = dir_.path(), .files = {"result_1.txt"}};

  EXPECT_THAT(JudgeFolder(folder, *rules::FindRuleSet("hpc-3.0.0")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("result_1.txt")));
}

TEST_F(ResultsTreeTest, AnEmptyTreeHoldsNothing) {
  EXPECT_THAT(Find(), IsEmpty());
  EXPECT_THAT(FindResultFolders(dir_.Path("absent")), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace assay::package
