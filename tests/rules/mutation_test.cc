// Equality with the official checker on logs that nobody has published: thousands of damaged copies
// of real and synthetic logs that pass, judged here and by the checker from PyPI in one process.

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/rules/check.h"
#include "common/rules/registry.h"
#include "tests/rules/log_mutator.h"
#include "tests/rules/oracle.h"
#include "tests/support/official_checker.h"
#include "tests/support/temp_dir.h"

namespace assay::rules {
namespace {

using ::assay::testing::LogMutator;
using ::assay::testing::OracleDir;
using ::assay::testing::ProgramRun;
using ::assay::testing::ProvideOfficialChecker;
using ::assay::testing::ReadJsonLines;
using ::assay::testing::RunToEnd;
using ::assay::testing::TempDir;
using ::assay::testing::Text;
using ::assay::testing::Unpack;

constexpr uint64_t kSeed = 20201106;
constexpr size_t kMutantsPerRound = 2000;
constexpr const char* kRounds[] = {"1.0.0", "2.0.0", "3.0.0"};

using Lines = std::vector<std::string>;

struct Mutant {
  const char* round;
  std::string log;
  std::string story;
};

std::string KeyOf(absl::string_view line) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits("\"key\": ", 1));
  return std::string(parts.second.substr(0, parts.second.find(',')));
}

// The records of a log, of each key only the first two and the last two.
Lines Shortened(const std::string& log) {
  const std::vector<std::string> all = absl::StrSplit(log, '\n', absl::SkipEmpty());
  std::map<std::string, int> left, seen;
  for (const std::string& line : all)
    ++left[KeyOf(line)];
  Lines lines;
  for (const std::string& line : all) {
    const std::string key = KeyOf(line);
    if (++seen[key] <= 2 || left[key] <= 2) lines.push_back(line);
    --left[key];
  }
  return lines;
}

bool Passes(const Lines& lines, const std::string& round) {
  return Check(absl::StrJoin(lines, "\n"), *FindRuleSet(round)).pass;
}

// One published log for each system, benchmark and division of round 1.0 that still passes when
// shortened, and the synthetic ones that are clean.
std::vector<Lines> Originals() {
  std::vector<Lines> originals;
  const TempDir dir;
  Unpack("hpc_results_v1.0.tar.xz", dir.path());
  std::set<std::string> seen;
  for (const JsonValue& row : ReadJsonLines(OracleDir() + "/official/verdicts_v1.0.jsonl")) {
    const std::string kind =
        absl::StrCat(Text(row, "dir_org"), " ", Text(row, "benchmark"), " ", Text(row, "division"));
    if (Text(row, "verdict") != "pass" || seen.count(kind) > 0) continue;
    const Lines lines =
        Shortened(ReadFile(dir.Path("hpc_results_v1.0/" + Text(row, "path"))).value_or(""));
    if (!Passes(lines, "1.0.0")) continue;
    seen.insert(kind);
    originals.push_back(lines);
  }
  Unpack("cases.tar.xz", dir.path());
  for (const JsonValue& row : ReadJsonLines(OracleDir() + "/official/cases.jsonl")) {
    if (Text(row, "verdict") != "pass" || !absl::StartsWith(Text(row, "what"), "clean")) continue;
    originals.push_back(Shortened(ReadFile(dir.Path("cases/" + Text(row, "file"))).value_or("")));
  }
  return originals;
}

std::vector<Mutant> MakeMutants() {
  const std::vector<Lines> originals = Originals();
  std::cout << originals.size() << " originals, seed " << kSeed << "\n";
  LogMutator mutator(kSeed);
  std::vector<Mutant> mutants;
  for (const char* round : kRounds) {
    for (const Lines& original : originals)
      mutants.push_back({round, absl::StrJoin(original, "\n"), "untouched"});
    for (size_t i = 0; i < kMutantsPerRound; ++i) {
      const Lines& original = originals[mutator.Below(originals.size())];
      const Lines& other = originals[mutator.Below(originals.size())];
      std::string log = mutator.Mutate(original, other);
      mutants.push_back({round, std::move(log), mutator.story()});
    }
  }
  return mutants;
}

// What the official checker says of each, in order.
std::vector<JsonValue> Ask(const std::string& python, const std::vector<Mutant>& mutants) {
  const TempDir dir;
  std::string logs;
  for (const Mutant& mutant : mutants)
    absl::StrAppend(&logs, mutant.round, " ", mutant.log.size(), "\n", mutant.log);
  CHECK_OK(WriteFileAtomic(dir.Path("logs"), logs));
  const ProgramRun run =
      RunToEnd({"/bin/sh", "-c", R"(exec "$0" tests/rules/official_verdicts.py "$1" > "$2")",
                python, dir.Path("logs"), dir.Path("verdicts")});
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return ReadJsonLines(dir.Path("verdicts"));
}

struct Verdict {
  std::string verdict, strict;
  std::set<std::string> errors, warnings;

  bool operator==(const Verdict&) const = default;
  std::string ToString() const {
    return absl::StrCat(verdict, " (strictly ", strict, ") errors ", absl::StrJoin(errors, " "),
                        " warnings ", absl::StrJoin(warnings, " "));
  }
};

Verdict Theirs(const JsonValue& row) {
  Verdict verdict = {Text(row, "verdict"), Text(row, "strict"), {}, {}};
  for (const JsonValue& error : *row.Find("errors")->AsList())
    verdict.errors.insert(*error.AsString());
  for (const JsonValue& key : *row.Find("warnings")->AsList())
    verdict.warnings.insert(*key.AsString());
  return verdict;
}

Verdict Ours(const Mutant& mutant) {
  const RuleSet& rules = *FindRuleSet(mutant.round);
  const auto word = [](const CheckResult& result) { return result.pass ? "pass" : "fail"; };
  const CheckResult result = Check(mutant.log, rules);
  Verdict verdict = {
      word(result), word(Check(mutant.log, rules, {.warnings_are_errors = true})), {}, {}};
  for (const Finding& finding : result.findings) {
    if (finding.severity == Severity::kError) {
      // As JSON would carry it: what is no text comes as the replacement character.
      verdict.errors.insert(*ParseJson(DumpJson(finding.error_class)).value.AsString());
    } else {
      verdict.warnings.insert(finding.key);
    }
  }
  return verdict;
}

// Keeps a log on which the two disagree, for a person to look at.
void Keep(const Mutant& mutant, size_t index) {
  const char* folder = std::getenv("ASSAY_KEEP_MUTANTS");
  if (folder == nullptr) return;
  CHECK_OK(MakeDirectories(folder));
  CHECK_OK(WriteFileAtomic(
      JoinPath(folder, absl::StrCat("mutant_", index, "_", mutant.round, ".txt")), mutant.log));
}

TEST(MutationTest, AgreesWithTheOfficialCheckerOnDamagedLogs) {
  REQUIRE_ORACLE();
  std::string why_not;
  const std::string python = ProvideOfficialChecker(&why_not);
  if (python.empty()) GTEST_SKIP() << why_not;

  const std::vector<Mutant> mutants = MakeMutants();
  const std::vector<JsonValue> rows = Ask(python, mutants);
  ASSERT_EQ(rows.size(), mutants.size());
  size_t equal = 0, passed = 0;
  std::set<std::string> classes;
  for (size_t i = 0; i < mutants.size(); ++i) {
    const Verdict theirs = Theirs(rows[i]);
    const Verdict ours = Ours(mutants[i]);
    passed += theirs.verdict == "pass";
    for (const std::string& error : theirs.errors)
      classes.insert(error.substr(0, error.find(':')));
    equal += ours == theirs;
    if (ours == theirs) continue;
    Keep(mutants[i], i);
    ADD_FAILURE() << "log " << i << " of round " << mutants[i].round << ": " << mutants[i].story
                  << "\n  official " << theirs.ToString() << "\n  ours     " << ours.ToString();
  }
  std::cout << mutants.size() << " logs, " << passed << " pass; equal " << equal
            << "; classes of error: " << absl::StrJoin(classes, " ") << "\n";
  EXPECT_GT(mutants.size(), 6000u);
  EXPECT_GE(classes.size(), 9u);
}

}  // namespace
}  // namespace assay::rules
