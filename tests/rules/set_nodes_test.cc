#include "common/rules/set_nodes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::rules {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SetNodesTest, RunsOnTheSameNodesInTheSameOrderPass) {
  const RunNodes runs[] = {{"r-1", {"n0", "n1"}}, {"r-2", {"n0", "n1"}}, {"r-3", {"n0", "n1"}}};
  EXPECT_THAT(CheckSetNodes(runs), IsEmpty());
}

TEST(SetNodesTest, ASwapIsToldOnce) {
  const RunNodes runs[] = {{"r-1", {"n0", "n1"}}, {"r-2", {"n0", "n2"}}, {"r-3", {"n0", "n2"}}};
  const std::vector<Finding> findings = CheckSetNodes(runs);

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule_id, "R-SET-001");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_EQ(findings[0].expected, "the nodes of run r-1");
  EXPECT_EQ(findings[0].found, "run r-2: n2 in the place of n1 (node 1)");
}

TEST(SetNodesTest, AnotherOrderIsAChangeToo) {
  const RunNodes runs[] = {{"r-1", {"n0", "n1"}}, {"r-2", {"n1", "n0"}}};
  const std::vector<Finding> findings = CheckSetNodes(runs);

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].found, HasSubstr("n1 in the place of n0 (node 0)"));
}

TEST(SetNodesTest, OfALargeGangTheFirstDifferencesAreTold) {
  RunNodes first{"r-1", {}};
  RunNodes second{"r-2", {}};
  for (int i = 0; i < 100; ++i) {
    first.nodes.push_back("a" + std::to_string(i));
    second.nodes.push_back("b" + std::to_string(i));
  }
  const std::vector<Finding> findings = CheckSetNodes(std::vector{first, second});

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].found, HasSubstr("b7 in the place of a7 (node 7), 92 more"));
}

TEST(SetNodesTest, RunsWhoseNodesAreUnknownSayNothing) {
  const RunNodes runs[] = {{"r-1", {}}, {"r-2", {"n0"}}, {"r-3", {}}, {"r-4", {"n0"}}};
  EXPECT_THAT(CheckSetNodes(runs), IsEmpty());
}

TEST(SetMaterialsTest, OtherMaterialsAreToldByTheirFile) {
  const RunNodes runs[] = {{"r-1", {}, {{"materials_0.json", "a"}, {"materials_1.json", "b"}}},
                           {"r-2", {}, {{"materials_0.json", "a"}, {"materials_1.json", "b"}}},
                           {"r-3", {}, {{"materials_0.json", "a"}, {"materials_1.json", "c"}}}};
  const std::vector<Finding> findings = CheckSetMaterials(runs);

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule_id, "R-SET-002");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_EQ(findings[0].expected, "the materials of run r-2");
  EXPECT_EQ(findings[0].found, "run r-3: other content of materials_1.json");
}

TEST(SetMaterialsTest, RunsWithoutABillSayNothing) {
  const RunNodes runs[] = {{"r-1", {}, {{"materials_0.json", "a"}}},
                           {"r-2", {}},
                           {"r-3", {}, {{"materials_0.json", "a"}}}};
  EXPECT_THAT(CheckSetMaterials(runs), IsEmpty());
}

}  // namespace
}  // namespace assay::rules
