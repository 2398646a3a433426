// The program itself over all stored verdicts of the official checker, and over a log that does not
// fit into its memory.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/sha256.h"
#include "tests/rules/oracle.h"
#include "tests/rules/sample_log.h"
#include "tests/support/official_checker.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using testing::OracleDir;
using testing::ProgramRun;
using testing::ReadJsonFile;
using testing::ReadJsonLines;
using testing::RunToEnd;
using testing::TempDir;
using testing::Text;
using testing::Unpack;

std::string Assay() {
  const char* const bin = std::getenv("ASSAY_BIN_DIR");
  return JoinPath(bin == nullptr ? "build/dev/bin" : bin, "assay");
}

// What `assay rules check --json` prints, one value per line. Its exit code goes to `exit_code`.
std::vector<JsonValue> CheckJson(const std::string& ruleset, const std::vector<std::string>& paths,
                                 int* exit_code) {
  const TempDir dir;
  std::vector<std::string> argv = {
      "/bin/sh", "-c",          R"(out=$1; shift; exec "$0" "$@" > "$out")",
      Assay(),   dir.Path("o"), "rules",
      "check",   "--json",      "--ruleset",
      ruleset};
  argv.insert(argv.end(), paths.begin(), paths.end());
  const ProgramRun run = RunToEnd(argv);
  *exit_code = run.exit_code;
  EXPECT_EQ(run.output, "");
  return ReadJsonLines(dir.Path("o"));
}

std::set<std::string> Strings(const JsonValue& row, absl::string_view name) {
  std::set<std::string> result;
  for (const JsonValue& element : *row.Find(name)->AsList())
    result.insert(*element.AsString());
  return result;
}

void ExpectSame(const JsonValue& stored, const JsonValue& ours) {
  EXPECT_EQ(Text(ours, "sha256"), Text(stored, "sha256")) << Text(ours, "path");
  EXPECT_EQ(Text(ours, "verdict"), Text(stored, "verdict")) << Text(ours, "path");
  EXPECT_EQ(Strings(ours, "errors"), Strings(stored, "errors")) << Text(ours, "path");
  EXPECT_EQ(Strings(ours, "warnings"), Strings(stored, "warnings")) << Text(ours, "path");
}

void CompareRound(const std::string& round) {
  const TempDir dir;
  Unpack(absl::StrCat("hpc_results_", round, ".tar.xz"), dir.path());
  std::map<std::string, JsonValue> stored;
  for (const JsonValue& row :
       ReadJsonLines(absl::StrCat(OracleDir(), "/official/verdicts_", round, ".jsonl")))
    stored[dir.Path(absl::StrCat("hpc_results_", round, "/", Text(row, "path")))] = row;
  const std::string ruleset = Text(stored.begin()->second, "ruleset");
  int exit_code = 0;
  const std::vector<JsonValue> ours = CheckJson(ruleset, {dir.path()}, &exit_code);

  EXPECT_EQ(exit_code, 3);  // some fail
  ASSERT_EQ(ours.size(), stored.size());
  auto row = stored.begin();
  for (const JsonValue& item : ours) {
    EXPECT_EQ(Text(item, "path"), row->first);  // in the order of the paths
    ExpectSame(row->second, item);
    ++row;
  }
  std::cout << round << ": " << ours.size() << " logs judged by the program\n";
}

TEST(RulesOracleTest, TheProgramAgreesOnRoundV07) {
  REQUIRE_ORACLE();
  CompareRound("v0.7");
}

TEST(RulesOracleTest, TheProgramAgreesOnRoundV10) {
  REQUIRE_ORACLE();
  CompareRound("v1.0");
}

TEST(RulesOracleTest, TheProgramAgreesOnTheSyntheticCases) {
  REQUIRE_ORACLE();
  const TempDir dir;
  Unpack("cases.tar.xz", dir.path());
  std::map<std::string, std::map<std::string, JsonValue>> stored;  // by ruleset and path
  for (const JsonValue& row : ReadJsonLines(OracleDir() + "/official/cases.jsonl"))
    stored[Text(row, "ruleset")][dir.Path("cases/" + Text(row, "file"))] = row;
  size_t count = 0;
  for (const auto& [ruleset, rows] : stored) {
    std::vector<std::string> paths;
    for (const auto& [path, row] : rows)
      paths.push_back(path);
    int exit_code = 0;
    const std::vector<JsonValue> ours = CheckJson(ruleset, paths, &exit_code);
    ASSERT_EQ(ours.size(), rows.size());
    auto row = rows.begin();
    for (const JsonValue& item : ours)
      ExpectSame((row++)->second, item);
    count += ours.size();
  }
  std::cout << count << " cases judged by the program\n";
}

// Through a named pipe, so that nothing can be mapped or read twice.
TEST(RulesOracleTest, ALogLargerThanTheMemoryIsJudged) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer keeps freed memory";
#endif
  constexpr int64_t kLogBytes = int64_t{256} << 20;
  constexpr int64_t kPeakKibMax = 96 << 10;
  const TempDir dir;
  const std::string pipe = dir.Path("result_0.txt");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string step;
  while (step.size() < (1 << 20))
    step +=
        ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1600000000000, \"event_type\": "
        "\"POINT_IN_TIME\", \"key\": \"train_loss\", \"value\": 1.25, \"metadata\": {\"file\": "
        "\"train.py\", \"lineno\": 7, \"epoch_num\": 1, \"step_num\": 100}}\n"
        ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1600000000000, \"event_type\": "
        "\"POINT_IN_TIME\", \"key\": \"eval_error\", \"value\": 0.5, \"metadata\": "
        "{\"epoch_num\": 1}}\n";
  Sha256 hash;
  std::thread writer([&] {
    const UniqueFd fd(open(pipe.c_str(), O_WRONLY | O_CLOEXEC));
    const std::string log = testing::CosmoflowLog().Text();
    hash.Add(log);
    CHECK_OK(WriteAll(fd.get(), log));
    for (int64_t sent = 0; sent < kLogBytes; sent += static_cast<int64_t>(step.size())) {
      hash.Add(step);
      CHECK_OK(WriteAll(fd.get(), step));
    }
  });
  int exit_code = 0;
  const std::vector<JsonValue> ours = CheckJson("3.0.0", {pipe}, &exit_code);
  writer.join();
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);

  EXPECT_EQ(exit_code, 0);
  ASSERT_EQ(ours.size(), 1u);
  EXPECT_EQ(Text(ours[0], "verdict"), "pass");
  EXPECT_EQ(Text(ours[0], "sha256"), hash.HexDigest());
  EXPECT_LT(usage.ru_maxrss, kPeakKibMax);
  std::cout << (kLogBytes >> 20) << " MiB judged in " << usage.ru_maxrss << " KiB\n";
}

}  // namespace
}  // namespace assay
