#include "common/package/seeds.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::package {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kHere[] = "{\"file\": \"a.py\", \"lineno\": 1}";

std::string Line(const std::string& value, const std::string& metadata = kHere) {
  return absl::StrCat(":::MLLOG {\"time_ms\": 1, \"key\": \"seed\", \"value\": ", value,
                      ", \"metadata\": ", metadata, "}\n");
}

// Rules and files of what the check of these logs finds; the first is "0", the next "1".
std::vector<std::string> Check(const std::vector<std::string>& logs) {
  SeedCheck check;
  for (size_t i = 0; i < logs.size(); ++i)
    check.AddLog(absl::StrCat(i), logs[i]);
  std::vector<std::string> found;
  for (const SeedFinding& finding : check.findings())
    found.push_back(absl::StrCat(finding.finding.rule_id, " ", finding.file));
  return found;
}

TEST(SeedCheckTest, DifferentSeedsPass) {
  EXPECT_THAT(Check({Line("1"), Line("2"), Line("\"3\""), Line("4.9")}), IsEmpty());
}

TEST(SeedCheckTest, EqualSeedsOfOneLineFail) {
  EXPECT_THAT(Check({Line("7"), Line("8"), Line("7")}), ElementsAre("R-SEED-002 2"));
  // The number is what int() makes of the value.
  for (const char* same : {"7.9", "\"7\"", "\" +0_7\"", "7.0"})
    EXPECT_THAT(Check({Line("7"), Line(same)}), ElementsAre("R-SEED-002 1")) << same;
  EXPECT_THAT(Check({Line("true"), Line("1")}), ElementsAre("R-SEED-002 1"));
  EXPECT_THAT(Check({Line("1e22"), Line("10000000000000000000000")}), ElementsAre("R-SEED-002 1"));
  // Line 1 is line 1.0, and file 1 is file true.
  EXPECT_THAT(Check({Line("7", "{\"file\": 1, \"lineno\": 1}"),
                     Line("7", "{\"file\": true, \"lineno\": 1.0}")}),
              ElementsAre("R-SEED-002 1"));
}

TEST(SeedCheckTest, EqualSeedsOfDifferentLinesPass) {
  EXPECT_THAT(Check({Line("7"), Line("7", "{\"file\": \"a.py\", \"lineno\": 2}"),
                     Line("7", "{\"file\": \"b.py\", \"lineno\": 1}"),
                     Line("7", "{\"file\": \"a.py\", \"lineno\": \"1\"}"),
                     Line("7", "{\"file\": null, \"lineno\": 1.5}")}),
              IsEmpty());
}

TEST(SeedCheckTest, EveryLogHasASeed) {
  EXPECT_THAT(Check({Line("1"), "free text\n", ""}), ElementsAre("R-SEED-001 1", "R-SEED-001 2"));
}

TEST(SeedCheckTest, SeveralSeedsAreAWarning) {
  SeedCheck check;
  check.AddLog("0", Line("1") + Line("2"));
  EXPECT_TRUE(check.passed());
  EXPECT_EQ(check.findings().at(0).finding.rule_id, "R-SEED-005");
  // The same twice in one log is an error all the same.
  EXPECT_THAT(Check({Line("1") + Line("1")}), ElementsAre("R-SEED-005 0", "R-SEED-002 0"));
}

TEST(SeedCheckTest, SeedsAreWholeNumbersFromSomewhere) {
  for (const char* bad : {"null", "[]", "{}", "\"seven\"", "\"7.0\"", "NaN", "Infinity", "\"\""})
    EXPECT_THAT(Check({Line(bad)}), ElementsAre("R-SEED-003 0")) << bad;
  for (const char* bad : {"{}", "null", "[\"file\"]", "{\"file\": \"a.py\"}", "{\"lineno\": 1}",
                          "{\"file\": [], \"lineno\": 1}"})
    EXPECT_THAT(Check({Line("7", bad)}), ElementsAre("R-SEED-003 0")) << bad;
}

TEST(SeedCheckTest, ADamagedLogIsNotCompared) {
  EXPECT_THAT(Check({Line("7"), Line("7") + ":::MLLOG {\n"}), ElementsAre("R-SEED-004 1"));
  EXPECT_THAT(Check({Line("7"), Line("7") + Line("null")}), ElementsAre("R-SEED-003 1"));
}

TEST(SeedCheckTest, ManyRepeatsAreCountedAndNotListed) {
  std::string log;
  for (int i = 0; i < 1000; ++i)
    log += Line("7");
  EXPECT_THAT(Check({log}), ::testing::SizeIs(6));
}

TEST(SeedCheckTest, ASetIsToldOnce) {
  SeedCheck check;
  check.AddLog("0", Line("7"));
  for (const char* file : {"1", "2", "3"})
    check.AddLog(file, Line("7"));
  for (const char* file : {"4", "5"})
    check.AddLog(file, "");

  const std::vector<SeedFinding> closed = check.OfSet(/*is_closed=*/true, /*is_weak=*/false);
  ASSERT_EQ(closed.size(), 2U);
  EXPECT_EQ(closed[0].file, "1");
  EXPECT_EQ(closed[0].finding.found, "seed 7 of a.py:1, which 0 logs too, in 3 logs");
  EXPECT_EQ(closed[1].finding.found, "none, in 2 logs");
  EXPECT_EQ(closed[0].finding.severity, rules::Severity::kError);

  // Equal seeds must be pruned from throughput sets of both divisions.
  const std::vector<SeedFinding> open = check.OfSet(/*is_closed=*/false, /*is_weak=*/true);
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].finding.rule_id, "R-SEED-002");
  EXPECT_EQ(open[0].finding.severity, rules::Severity::kWarning);
  EXPECT_THAT(check.OfSet(/*is_closed=*/false, /*is_weak=*/false), IsEmpty());
}

TEST(SeedCheckTest, ALineOfTheLogIsNamed) {
  SeedCheck check;
  check.AddLog("0", Line("7"));
  check.AddLog("1", absl::StrCat("text\n", Line("7")));
  ASSERT_EQ(check.findings().size(), 1U);
  EXPECT_EQ(check.findings()[0].finding.line, 2);
  EXPECT_EQ(check.findings()[0].finding.found, "seed 7 of a.py:1, which 0 logs too");
}

}  // namespace
}  // namespace assay::package
