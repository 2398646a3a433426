// Equality with the official package, seed, system description and repo checkers: what they say of
// every organisation of two published rounds is compared with what we say, as sets, because their
// order follows the file system.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/package/package_check.h"
#include "common/package/results_tree.h"
#include "common/package/seeds.h"
#include "common/package/system_description.h"
#include "common/rules/registry.h"
#include "tests/package/package_verdict.h"
#include "tests/rules/oracle.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::package {
namespace {

using ::assay::testing::OracleDir;
using ::assay::testing::ReadJsonFile;
using ::assay::testing::TempDir;
using ::assay::testing::Text;
using ::assay::testing::Unpack;
namespace fs = std::filesystem;

// v0.7 was judged with a level strong put in, as the tool knows no round without.
void InsertStrong(const std::string& repository) {
  std::vector<fs::path> systems;
  for (const fs::directory_entry& organization : fs::directory_iterator(repository))
    for (const fs::directory_entry& system :
         fs::directory_iterator(organization.path() / "results"))
      if (system.is_directory()) systems.push_back(system.path());
  for (const fs::path& system : systems) {
    const fs::path moved = system.parent_path() / "moved";
    fs::rename(system, moved);
    fs::create_directory(system);
    fs::rename(moved, system / "strong");
  }
}

void CompareRound(const std::string& round, size_t organization_count) {
  const TempDir dir;
  Unpack(absl::StrCat("hpc_results_", round, ".tar.xz"), dir.path());
  const std::string repository = dir.Path("hpc_results_" + round);
  if (round == "v0.7") InsertStrong(repository);
  const absl::StatusOr<std::string> text =
      ReadFile(absl::StrCat(OracleDir(), "/official/package_", round, ".txt"));
  ASSERT_TRUE(text.ok()) << text.status();
  const auto official = ReadOfficial(*text);
  const auto reports = CheckPackages(repository, *rules::FindRuleSet("hpc-1.0.0"));
  ASSERT_TRUE(reports.ok()) << reports.status();
  ASSERT_EQ(reports->size(), organization_count);
  ASSERT_EQ(official.size(), organization_count);
  int directories = 0, equal_directories = 0, equal_organizations = 0;
  for (const OrganizationReport& report : *reports) {
    const OrganizationVerdict& expected = official.at(report.organization);
    const OrganizationVerdict ours = VerdictOf(report, repository);
    EXPECT_EQ(ours.pass, expected.pass) << report.organization;
    EXPECT_EQ(ours.directories, expected.directories) << report.organization;
    EXPECT_EQ(ours.runs, expected.runs) << report.organization;
    EXPECT_EQ(ours.descriptions_passed, expected.descriptions_passed) << report.organization;
    equal_organizations += ours.pass == expected.pass;
    for (const auto& [path, statements] : expected.directories) {
      ++directories;
      const auto found = ours.directories.find(path);
      equal_directories += found != ours.directories.end() && found->second == statements;
    }
  }
  std::cout << round << ": " << equal_organizations << " of " << organization_count
            << " organisations, " << equal_directories << " of " << directories
            << " directories equal\n";
}

TEST(PackageOracleTest, RoundV07AgreesWithTheOfficialPackageChecker) {
  REQUIRE_ORACLE();
  CompareRound("v0.7", 6);
}

TEST(PackageOracleTest, RoundV10AgreesWithTheOfficialPackageChecker) {
  REQUIRE_ORACLE();
  CompareRound("v1.0", 8);
}

TEST(PackageOracleTest, EverySetAgreesWithTheOfficialSeedChecker) {
  REQUIRE_ORACLE();
  const TempDir dir;
  Unpack("hpc_results_v0.7.tar.xz", dir.path());
  Unpack("hpc_results_v1.0.tar.xz", dir.path());
  const std::map<std::string, std::string> kinds = {{"no_seed", "R-SEED-001"},
                                                    {"same_seed_same_line", "R-SEED-002"}};
  int equal = 0;
  const JsonValue rows = ReadJsonFile(OracleDir() + "/official/seed_oracle.json");
  for (const JsonValue& row : *rows.AsList()) {
    const std::string path =
        dir.Path(absl::StrCat("hpc_results_", Text(row, "round"), "/", Text(row, "dir")));
    SeedCheck check;
    int64_t files = 0;
    for (const std::string& name : NamesIn(path)) {
      if (!IsResultFile(name)) continue;
      ++files;
      check.AddLog(name, *ReadFile(JoinPath(path, name)));
    }
    std::map<std::string, int64_t> expected, ours;
    for (const auto& [kind, count] : *row.Find("kinds")->AsObject())
      expected[kinds.at(kind)] = *count.AsInt64();
    if (const int64_t several = *row.Find("multi_seed_warnings")->AsInt64(); several > 0)
      expected["R-SEED-005"] = several;
    for (const SeedFinding& found : check.findings())
      ++ours[found.finding.rule_id];
    EXPECT_EQ(files, row.Find("files")->AsInt64()) << path;
    EXPECT_EQ(check.passed(), row.Find("passed")->AsBool()) << path;
    EXPECT_EQ(ours, expected) << path;
    equal += check.passed() == row.Find("passed")->AsBool() && ours == expected;
  }
  std::cout << "seeds: " << equal << " of " << rows.AsList()->size() << " sets equal\n";
  EXPECT_EQ(equal, 46);
}

TEST(PackageOracleTest, EveryDescriptionAgreesWithTheOfficialChecker) {
  REQUIRE_ORACLE();
  const TempDir dir;
  Unpack("hpc_results_v0.7.tar.xz", dir.path());
  Unpack("hpc_results_v1.0.tar.xz", dir.path());
  const JsonValue oracle = ReadJsonFile(OracleDir() + "/official/system_desc.json");
  std::vector<std::string> required;
  for (const JsonValue& name : *oracle.Find("required_fields")->AsList())
    required.push_back(*name.AsString());
  EXPECT_EQ(required, std::vector<std::string>(RequiredSystemMembers().begin(),
                                               RequiredSystemMembers().end()));
  int equal = 0;
  for (const JsonValue& row : *oracle.Find("files")->AsList()) {
    const std::string path = Text(row, "path");
    const absl::StatusOr<std::string> bytes =
        ReadFile(dir.Path(absl::StrCat("hpc_results_", Text(row, "round"), "/", path)));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    std::set<std::string> missing, expected_missing;
    bool valid = true, name_differs = false;
    const std::string file = path.substr(path.rfind('/') + 1);
    for (const rules::Finding& finding : CheckSystemDescription(
             *bytes, {.system = std::string(absl::StripSuffix(file, ".json"))})) {
      valid = valid && finding.severity != rules::Severity::kError;
      name_differs = name_differs || finding.rule_id == "R-DESC-008";
      if (finding.rule_id == "R-DESC-002") missing.insert(finding.key);
    }
    for (const JsonValue& name : *row.Find("missing")->AsList())
      expected_missing.insert(*name.AsString());
    EXPECT_EQ(valid, row.Find("valid")->AsBool()) << path;
    EXPECT_EQ(missing, expected_missing) << path;
    EXPECT_EQ(!name_differs, row.Find("name_matches_file")->AsBool()) << path;
    equal += valid == row.Find("valid")->AsBool() && missing == expected_missing;
  }
  std::cout << "descriptions: " << equal << " of " << oracle.Find("files")->AsList()->size()
            << " equal\n";
  EXPECT_EQ(equal, 47);
}

// The code of the submissions is not among the published logs, so what the official checker lists
// (at most five names each) is put beside them as empty files.
TEST(PackageOracleTest, EveryOrganisationAgreesWithTheOfficialRepoChecker) {
  REQUIRE_ORACLE();
  const TempDir dir;
  Unpack("hpc_results_v0.7.tar.xz", dir.path());
  Unpack("hpc_results_v1.0.tar.xz", dir.path());
  int equal = 0;
  const JsonValue rows = ReadJsonFile(OracleDir() + "/official/repo_checker.json");
  for (const JsonValue& row : *rows.AsList()) {
    const std::string repository = dir.Path("hpc_results_" + Text(row, "round"));
    std::set<std::string> expected;
    for (const JsonValue& bad : *row.Find("bad")->AsList())
      expected.insert(*bad.AsString());
    // Deeper names first: a name may be the folder of another.
    for (auto name = expected.rbegin(); name != expected.rend(); ++name) {
      const std::string path = JoinPath(repository, *name);
      CHECK_OK(MakeDirectories(path.substr(0, path.rfind('/'))));
      if (!FileExists(path)) testing::WriteFile(path, "");
    }
    const TreeReader tree = *TreeReader::Open(repository);
    const RepositoryReport report =
        CheckRepository(tree, JoinPath(repository, Text(row, "org")), Text(row, "org"));
    std::set<std::string> bad;
    for (const PackageFinding& found : report.findings)
      bad.insert(found.path);
    EXPECT_EQ(report.are_names_ok, row.Find("names_ok")->AsBool()) << Text(row, "org");
    EXPECT_EQ(report.are_sizes_ok, row.Find("sizes_ok")->AsBool()) << Text(row, "org");
    EXPECT_EQ(report.are_links_ok, row.Find("links_ok")->AsBool()) << Text(row, "org");
    EXPECT_EQ(bad, expected) << Text(row, "org");
    equal += bad == expected && report.are_names_ok == row.Find("names_ok")->AsBool();
  }
  std::cout << "repositories: " << equal << " of " << rows.AsList()->size() << " equal\n";
  EXPECT_EQ(equal, 14);
}

}  // namespace
}  // namespace assay::package
