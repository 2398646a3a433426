// Files that would hang a reader, fill its memory or exhaust its stack, under every name by which a
// command reads one.

#include <sys/stat.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/toml.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::HasSubstr;

std::string Repeat(absl::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&text, part);
  return text;
}

class HostileFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(HostileFileTest, NothingButRegularFilesIsReadAndNothingWaits) {
  const std::string pipe = run_.home.Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string round = run_.home.Path("round.toml");
  ASSERT_EQ(mkfifo(round.c_str(), 0600), 0);
  const char* const kCommands[] = {
      "plan FILE",
      "submit FILE",
      "--token-file FILE entry list",
      "--ca FILE entry list",
      "rules verify FILE --public-key FILE",
      "rules freeze hpc-3.0.0 --key FILE --out x",
      "rules show round.toml",
  };
  for (const char* command : kCommands) {
    for (const std::string& file : {pipe, std::string("/dev/zero"), run_.home.path()}) {
      const ExitStatus status = run_.Run(absl::StrReplaceAll(command, {{"FILE", file}}));

      EXPECT_EQ(status, ExitStatus::kUsage) << command << " " << file << "\n" << run_.err;
      EXPECT_THAT(run_.err, HasSubstr("not a regular file")) << command << " " << file;
    }
  }
}

TEST_F(HostileFileTest, APipeAmongLogsIsAFinding) {
  ASSERT_EQ(mkdir(run_.home.Path("logs").c_str(), 0700), 0);
  ASSERT_EQ(mkfifo(run_.home.Path("logs/result_0.txt").c_str(), 0600), 0);

  EXPECT_EQ(run_.Run("rules check --ruleset 3.0.0 logs"), ExitStatus::kFailed);
  EXPECT_THAT(run_.out, HasSubstr("not a regular file"));
}

TEST_F(HostileFileTest, SettingsThatAreNoFileAreRefused) {
  ASSERT_EQ(mkfifo(run_.home.Path("assay.toml").c_str(), 0600), 0);

  EXPECT_EQ(run_.Run("config list"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("assay.toml is a pipe"));
}

TEST_F(HostileFileTest, TomlBeyondItsLimitsIsRefusedWithItsPlace) {
  const struct {
    const char* name;
    std::string text;
    const char* message;
  } cases[] = {
      {"header of 50,000 parts", absl::StrCat("# x\n[", Repeat("a.", 50'000), "a]\n"), ":2:"},
      {"a million keys", Repeat("abcdef = 1\n", 1'000'000), "more than the 262144 bytes"},
      {"10,000 keys", Repeat("abcdef = 1\n", 10'000), "more than 4096 names"},
      {"lists in lists", absl::StrCat("a = ", Repeat("[", 10'000)), "within each other"},
  };
  for (const auto& c : cases) {
    run_.Write("hostile.toml", c.text);
    for (const char* command : {"plan hostile.toml", "rules show hostile.toml"}) {
      EXPECT_EQ(run_.Run(command), ExitStatus::kUsage) << c.name;
      EXPECT_THAT(run_.err, HasSubstr(c.message)) << c.name << " " << command;
      EXPECT_LT(run_.err.size(), 2000) << c.name;
    }
  }
}

// Every key is a mistake: what is said of them stays readable and costs no more than the file.
TEST_F(HostileFileTest, AFileOfMistakesIsToldInAPage) {
  std::string text;
  for (int i = 0; i < kTomlNamesMax; ++i)
    absl::StrAppend(&text, "k", i, " = 1\n");
  run_.Write("wrong.toml", text);

  EXPECT_EQ(run_.Run("plan wrong.toml"), ExitStatus::kUsage);
  EXPECT_LT(run_.err.size(), 50'000);
}

}  // namespace
}  // namespace assay
