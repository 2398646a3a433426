// Equality with the official package checker on packages that nobody has submitted: published ones
// with runs taken away, cut short and copied and with damaged descriptions, judged by the rules of
// the rounds of which we have no packages, here and by the checker from PyPI.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/package/package_check.h"
#include "common/package/results_tree.h"
#include "common/random.h"
#include "common/rules/registry.h"
#include "tests/package/package_verdict.h"
#include "tests/rules/oracle.h"
#include "tests/support/official_checker.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::package {
namespace {

using ::assay::testing::OracleDir;
using ::assay::testing::ProgramRun;
using ::assay::testing::ProvideOfficialChecker;
using ::assay::testing::RunToEnd;
using ::assay::testing::TempDir;
using ::assay::testing::Unpack;

constexpr uint64_t kSeed = 20221118;
// Small ones: the official checker takes seconds for each.
constexpr const char* kOrganizations[] = {"ANL", "CSCS", "NCSA", "TACC"};

// Damages packages at random, and tells what it did.
class Vandal {
 public:
  Vandal(uint64_t seed, std::string repository)
      : stream_(seed, Purpose::kTest), repository_(std::move(repository)) {}

  void DamageRuns(const std::string& directory) {
    std::vector<std::string> logs;
    for (const std::string& name : NamesIn(JoinPath(repository_, directory)))
      if (IsResultFile(name)) logs.push_back(JoinPath(JoinPath(repository_, directory), name));
    ASSERT_GE(logs.size(), 2U) << directory;
    std::rotate(logs.begin(), logs.begin() + Below(logs.size()), logs.end());
    switch (Below(5)) {
      case 0:
        return Tell(directory, "left alone");
      case 1:
        ASSERT_EQ(std::remove(logs[0].c_str()), 0);
        return Tell(directory, "one run taken away");
      case 2:
        testing::WriteFile(logs[1], *ReadFile(logs[0]));
        return Tell(directory, "one run copied over another");
      default:
        break;
    }
    const int64_t count = 1 + Below(2);
    for (int64_t i = 0; i < count; ++i)
      CutShort(logs[static_cast<size_t>(i)]);
    Tell(directory, absl::StrCat(count, " cut short"));
  }

  // A line of a description: one member, or a brace.
  void DamageDescription(const std::string& organization) {
    const std::string folder = JoinPath(JoinPath(repository_, organization), "systems");
    std::vector<std::string> names = NamesIn(folder);
    ASSERT_FALSE(names.empty());
    const std::string path = JoinPath(folder, names[static_cast<size_t>(Below(names.size()))]);
    const std::string text = *ReadFile(path);
    const size_t at = text.find("\n", static_cast<size_t>(Below(text.size() / 2)));
    const size_t end = text.find('\n', at + 1);
    testing::WriteFile(path, text.substr(0, at) + text.substr(end));
    Tell(path.substr(repository_.size() + 1), "one line taken away");
  }

  // Since it was last asked.
  std::string TakeStory() { return absl::StrJoin(std::exchange(told_, {}), "; "); }

 private:
  int64_t Below(size_t count) {
    return static_cast<int64_t>(stream_.Below(draws_++, static_cast<uint32_t>(count)));
  }

  void CutShort(const std::string& log) {
    const std::string text = *ReadFile(log);
    testing::WriteFile(log, text.substr(0, text.rfind('\n', text.size() / 2) + 1));
  }

  void Tell(const std::string& where, const std::string& what) {
    told_.push_back(absl::StrCat(where, ": ", what));
  }

  const Stream stream_;
  const std::string repository_;
  uint64_t draws_ = 0;
  std::vector<std::string> told_;
};

// ORGANIZATION/results/SYSTEM/SCALING/BENCHMARK of all that it has, in order.
std::vector<std::string> RunDirectories(const std::string& repository,
                                        const std::string& organization) {
  std::vector<std::string> found = {JoinPath(organization, "results")};
  for (int level = 0; level < 3; ++level) {
    std::vector<std::string> deeper;
    for (const std::string& directory : found)
      for (const std::string& name : NamesIn(JoinPath(repository, directory)))
        deeper.push_back(JoinPath(directory, name));
    found = std::move(deeper);
  }
  return found;
}

// What the official checker prints of an organisation, headed as ReadOfficial wants it.
std::string Ask(const std::string& python, const std::string& repository,
                const std::string& organization, const std::string& round) {
  const TempDir dir;
  const ProgramRun run = RunToEnd(
      {"/bin/sh", "-c",
       R"(cd "$1" && exec "$0" -m mlperf_logging.package_checker "$2" hpc "$3" --log_output "$4")",
       python, repository, organization, round, dir.Path("log")});
  return absl::StrCat("### ORG: ", organization, " \n", run.output);
}

// Compares what is said of an organisation; adds the official words on its directories to `said`.
void Compare(const std::string& official, const OrganizationReport& report,
             const std::string& repository, std::vector<Statements>* said) {
  const OrganizationVerdict ours = VerdictOf(report, repository);
  const OrganizationVerdict theirs = ReadOfficial(official)[report.organization];
  EXPECT_EQ(ours.pass, theirs.pass);
  // A crash of the official checker counts as a failure and hides what it would have said.
  if (absl::StrContains(official, "Traceback")) return;
  EXPECT_EQ(ours.descriptions_passed, theirs.descriptions_passed);
  EXPECT_EQ(ours.directories, theirs.directories);
  EXPECT_EQ(ours.runs, theirs.runs);
  for (const auto& [path, statements] : theirs.directories)
    said->push_back(statements);
}

class PackageMutationTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PackageMutationTest, AgreesWithTheOfficialCheckerOnDamagedPackages) {
  REQUIRE_ORACLE();
  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;
  const std::string round = GetParam();
  const TempDir dir;
  Unpack("hpc_results_v1.0.tar.xz", dir.path());
  const std::string repository = dir.Path("hpc_results_v1.0");
  const rules::RuleSet& rules = *rules::FindRuleSet(absl::StrCat("hpc-", round));
  std::cout << "seed " << kSeed << "\n";

  std::vector<Statements> said;
  Vandal vandal(kSeed + static_cast<uint64_t>(round[0]), repository);
  for (const std::string organization : kOrganizations) {
    for (const std::string& directory : RunDirectories(repository, organization))
      vandal.DamageRuns(directory);
    vandal.DamageDescription(organization);
    const auto reports = CheckPackages(JoinPath(repository, organization), rules);
    ASSERT_TRUE(reports.ok()) << reports.status();
    ASSERT_EQ(reports->size(), 1U);
    SCOPED_TRACE(vandal.TakeStory());
    Compare(Ask(python, repository, organization, round), reports->front(), repository, &said);
  }
  Statements kinds;
  for (const Statements& of_directory : said)
    kinds.insert(of_directory.begin(), of_directory.end());
  std::cout << "round " << round << ": " << said.size()
            << " directories compared, said of them: " << absl::StrJoin(kinds, ", ") << "\n";
  EXPECT_GE(said.size(), 5U);
  EXPECT_GE(kinds.size(), 3U) << "too little damage to tell anything";
}

INSTANTIATE_TEST_SUITE_P(Rounds, PackageMutationTest, ::testing::Values("2.0.0", "3.0.0"));

}  // namespace
}  // namespace assay::package
