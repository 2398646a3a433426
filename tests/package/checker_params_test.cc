#include "common/package/checker_params.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::package {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(CheckerParamsTest, OnlyAWordWithoutLineEndCounts) {
  EXPECT_TRUE(ParseCheckerParams("rcp-bypass").bypasses_rcp);
  EXPECT_TRUE(ParseCheckerParams("# why\nseed-checker-bypass").bypasses_seeds);
  EXPECT_FALSE(ParseCheckerParams("rcp-bypass\nseed-checker-bypass").bypasses_rcp);
  for (const char* without : {"", "rcp-bypass\n", "rcp-bypass\r", "rcp_bypass", " rcp-bypass",
                              "rcp-bypass ", "RCP-BYPASS", "rcp-bypass\n\n"}) {
    const CheckerParams params = ParseCheckerParams(without);
    EXPECT_FALSE(params.bypasses_rcp || params.bypasses_seeds) << without;
  }
}

TEST(CheckerParamsTest, LinesWithoutEffectAreNamed) {
  const CheckerParams params = ParseCheckerParams("\nrcp_bypass\nrcp-bypass");
  ASSERT_THAT(params.findings, SizeIs(1));
  EXPECT_EQ(params.findings[0].rule_id, "R-PKG-014");
  EXPECT_EQ(params.findings[0].line, 2);
  EXPECT_THAT(ParseCheckerParams("rcp-bypass").findings, IsEmpty());
  EXPECT_THAT(ParseCheckerParams(std::string(100000, '\n') + "x").findings, SizeIs(1));
}

TEST(CheckerParamsTest, OtherBytesThanUtf8AreAnError) {
  const CheckerParams params = ParseCheckerParams("\xFF\nrcp-bypass");
  ASSERT_THAT(params.findings, SizeIs(1));
  EXPECT_EQ(params.findings[0].severity, rules::Severity::kError);
  EXPECT_FALSE(params.bypasses_rcp);
}

}  // namespace
}  // namespace assay::package
