// Equality with the stored scores of the official tools: every member of every entry.

#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/client/folder_score_json.h"
#include "common/rules/registry.h"
#include "tests/rules/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::client {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::OracleDir;
using ::assay::testing::TempDir;
using ::assay::testing::Unpack;

struct Tally {
  int entries = 0;
  int members = 0;
  int values = 0;        // leaves of the members
  int values_equal = 0;  // numbers to a relative 1e-12
  int values_exact = 0;  // numbers to the last bit
};

void CompareNumbers(const Json& ours, const Json& official, const std::string& where,
                    Tally* tally) {
  const double a = ours.get<double>();
  const double b = official.get<double>();
  const bool is_equal = std::fabs(a - b) <= 1e-12 * std::fabs(b);
  tally->values_exact += a == b ? 1 : 0;
  tally->values_equal += is_equal ? 1 : 0;
  EXPECT_TRUE(is_equal) << where << ": " << ours << " instead of " << official;
}

// All of `official` must be in `ours`; ours may have more members.
void Compare(const Json& ours, const Json& official, const std::string& where, Tally* tally) {
  if (official.is_object()) {
    ASSERT_TRUE(ours.is_object()) << where << ": " << ours << " instead of " << official;
    for (const auto& [name, value] : official.items()) {
      ASSERT_TRUE(ours.contains(name)) << where << " lacks " << name;
      Compare(ours[name], value, absl::StrCat(where, ".", name), tally);
    }
  } else if (official.is_array()) {
    ASSERT_TRUE(ours.is_array()) << where << ": " << ours;
    ASSERT_EQ(ours.size(), official.size()) << where;
    for (size_t i = 0; i < official.size(); ++i)
      Compare(ours[i], official[i], absl::StrCat(where, "[", i, "]"), tally);
  } else {
    ++tally->values;
    if (ours.is_number() && official.is_number()) {
      CompareNumbers(ours, official, where, tally);
      return;
    }
    EXPECT_EQ(ours, official) << where;
    tally->values_equal += ours == official ? 1 : 0;
    tally->values_exact += ours == official ? 1 : 0;
  }
}

std::string KeyOf(const Json& entry) {
  return absl::StrCat(entry["org"].get<std::string>(), "/", entry["system"].get<std::string>(), "/",
                      entry["scaling"].get<std::string>(), "/",
                      entry["benchmark"].get<std::string>());
}

std::map<std::string, Json> ScoreRound(const std::string& directory, const std::string& round) {
  std::map<std::string, Json> scores;
  const auto folders = package::FindResultFolders(directory);
  EXPECT_THAT(folders, IsOk());
  for (const package::ResultFolder& folder : *folders) {
    const auto set = package::ScoreFolder(folder, *rules::FindRuleSet(round));
    EXPECT_THAT(set, IsOk()) << folder.source_path;
    if (!set.ok()) continue;
    const Json json = FolderScoreJson(*set);
    scores[KeyOf(json)] = json;
  }
  return scores;
}

void CompareRound(const std::string& name, const std::string& round) {
  const TempDir dir;
  Unpack(absl::StrCat("hpc_results_", name, ".tar.xz"), dir.path());
  const std::map<std::string, Json> scores =
      ScoreRound(dir.Path(absl::StrCat("hpc_results_", name)), round);
  const absl::StatusOr<std::string> text =
      ReadFile(absl::StrCat(OracleDir(), "/official/scores_", name, ".json"));
  ASSERT_THAT(text, IsOk());
  const Json official = Json::parse(*text);
  Tally tally;
  for (const Json& entry : official["entries"]) {
    const auto ours = scores.find(KeyOf(entry));
    ASSERT_NE(ours, scores.end()) << KeyOf(entry);
    Compare(ours->second, entry, KeyOf(entry), &tally);
    ++tally.entries;
    tally.members += static_cast<int>(entry.size());
  }
  EXPECT_EQ(scores.size(), official["entries"].size());
  EXPECT_EQ(tally.values, tally.values_equal);
  std::cout << name << " by " << round << ": " << tally.entries << " entries with " << tally.members
            << " members; of " << tally.values << " values " << tally.values_equal << " equal, "
            << tally.values_exact << " to the last bit\n";
}

TEST(FolderScoreTest, RoundV07EqualsTheOfficialScores) {
  REQUIRE_ORACLE();
  CompareRound("v0.7", "0.7.0");
}

// The official tools judge v0.7 with the rules of 1.0.
TEST(FolderScoreTest, RoundV07EqualsThemUnderTheRulesOf10AsWell) {
  REQUIRE_ORACLE();
  CompareRound("v0.7", "1.0.0");
}

TEST(FolderScoreTest, RoundV10EqualsTheOfficialScores) {
  REQUIRE_ORACLE();
  CompareRound("v1.0", "1.0.0");
}

}  // namespace
}  // namespace assay::client
