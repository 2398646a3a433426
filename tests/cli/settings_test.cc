#include "cli/command/settings.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/cli/invocation.h"
#include "tests/support/status_matchers.h"

namespace assay {
namespace {

using cli::ExitStatus;
using client::Config;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

TEST(ConfigTest, StrongerSourcesWinAndSayWhoTheyAre) {
  testing::Invocation run;
  run.Write("etc/config.toml", "server = \"system:1\"\n");
  const auto origin = [&](const std::map<std::string, std::string>& flags) {
    const absl::StatusOr<Config> config = cli::LoadConfig(run.env, flags);
    return config.ok() ? config->Find("server")->value + " from " + config->Find("server")->origin
                       : config.status().ToString();
  };
  EXPECT_THAT(origin({}), AllOf(HasSubstr("system:1 from"), HasSubstr("etc/config.toml:1")));

  run.Write(".config/assay/config.toml", "# mine\nserver = \"user:1\"\n");
  EXPECT_THAT(origin({}), AllOf(HasSubstr("user:1 from"), HasSubstr("config.toml:2")));

  run.Write("assay.toml", "server = \"project:1\"\n");
  run.env.working_directory = run.home.Path("deep/er");
  EXPECT_THAT(origin({}), HasSubstr("project:1 from"));

  run.env.variables["ASSAY_SERVER"] = "variable:1";
  EXPECT_EQ(origin({}), "variable:1 from ASSAY_SERVER");
  EXPECT_EQ(origin({{"server", "flag:1"}}), "flag:1 from --server");
}

TEST(ConfigTest, TheSearchForAProjectFileEndsAtTheRepository) {
  testing::Invocation run;
  run.Write("assay.toml", "server = \"outer:1\"\n");
  run.Write("repository/.git/HEAD", "x");
  run.env.working_directory = run.home.Path("repository");

  const absl::StatusOr<Config> config = cli::LoadConfig(run.env, {});
  ASSERT_THAT(config, testing::IsOk());
  EXPECT_FALSE(config->Find("server").has_value());
}

TEST(ConfigTest, DamagedFilesAreReportedWithTheirPlace) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case kCases[] = {{"color = \"auto\"\nsevrer = \"x\"\n",
                          "assay.toml:2:1: unknown key 'sevrer'; did you mean "
                          "'server'?"},
                         {"token = \"assay_x\"\n", "is a secret"},
                         {"server = 7\n", "assay.toml:1:1: 'server' must be a string"},
                         {"server = \n", "assay.toml:1:"}};
  for (const Case& c : kCases) {
    testing::Invocation run;
    run.Write("assay.toml", c.text);
    EXPECT_THAT(cli::LoadConfig(run.env, {}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

TEST(ConfigTest, AContextStandsBehindWhatIsGivenBesideTheChoice) {
  testing::Invocation run;
  run.Write(".config/assay/config.toml",
            "context = \"prod\"\n[contexts.prod]\nserver = \"prod:1\"\nca = \"prod.crt\"\n"
            "[contexts.test]\nserver = \"test:1\"\n");
  const auto server = [&](const std::map<std::string, std::string>& flags) {
    const absl::StatusOr<Config> config = cli::LoadConfig(run.env, flags);
    return config.ok() ? config->Find("server")->value + " from " + config->Find("server")->origin
                       : config.status().ToString();
  };

  EXPECT_THAT(server({}), AllOf(HasSubstr("prod:1 from"), HasSubstr("config.toml:3")));
  EXPECT_THAT(server({{"context", "test"}}), HasSubstr("test:1 from"));
  EXPECT_THAT(server({{"context", "test"}, {"server", "flag:1"}}), HasSubstr("flag:1 from"));
  EXPECT_THAT(server({{"context", "tset"}}),
              HasSubstr("--context: there is no context 'tset'; did you mean 'test'"));
  run.env.variables["ASSAY_SERVER"] = "variable:1";
  EXPECT_THAT(server({{"context", "test"}}), HasSubstr("test:1 from"));
  EXPECT_THAT(server({}), HasSubstr("variable:1 from"));
}

TEST(ConfigTest, UseChoosesAContextAndKeepsTheRest) {
  testing::Invocation run;
  run.Write(".config/assay/config.toml", "[contexts.prod]\nserver = \"prod:1\"\n");

  EXPECT_EQ(run.Run("config use prod"), ExitStatus::kDone);

  EXPECT_EQ(run.Run("config contexts -o plain -H"), ExitStatus::kDone);
  EXPECT_THAT(run.out, HasSubstr("prod\tprod:1\ttrue\t"));
  run.Run("config get server");
  EXPECT_EQ(run.out, "prod:1\n");
  EXPECT_EQ(run.Run("config use pord"), ExitStatus::kNotFound);
}

TEST(ConfigTest, SetKeepsCommentsAndOtherKeys) {
  EXPECT_EQ(
      client::WithSetting("# mine\ncolor = \"auto\"  # why\nserver = \"a:1\"\n", "server", "b:2"),
      "# mine\ncolor = \"auto\"  # why\nserver = \"b:2\"\n");
  EXPECT_EQ(client::WithSetting("", "server", "b:2"), "server = \"b:2\"\n");
  EXPECT_EQ(client::WithSetting("[contexts.a]\nserver = \"a:1\"\n", "server", "b:2"),
            "server = \"b:2\"\n[contexts.a]\nserver = \"a:1\"\n")
      << "a context keeps its own";
}

TEST(ConfigTest, SecretsAreShownNowhereAndNotTakenFromTheCommandLine) {
  testing::Invocation run;
  for (const char* line : {"config set token assay_abc", "config set token assay_abc --project",
                           "--token assay_abc entry list", "entry list --token assay_abc",
                           "entry list --token=assay_abc"}) {
    EXPECT_EQ(run.Run(line), ExitStatus::kUsage) << line;
    EXPECT_THAT(run.err, AnyOf(HasSubstr("--token-file"), HasSubstr("token_file"))) << line;
    EXPECT_THAT(run.out + run.err, Not(HasSubstr("assay_abc"))) << line;
  }

  run.env.variables["ASSAY_TOKEN"] = "assay_abc";
  EXPECT_EQ(run.Run("config list --origin"), ExitStatus::kDone);
  EXPECT_THAT(run.out, HasSubstr("token\t(hidden)\t"));
}

TEST(ConfigTest, SetAndGetAgree) {
  testing::Invocation run;

  EXPECT_EQ(run.Run("config set server bench:7443"), ExitStatus::kDone);
  EXPECT_EQ(run.Run("config get server"), ExitStatus::kDone);
  EXPECT_EQ(run.out, "bench:7443\n");
  EXPECT_EQ(run.Run("config get nothing"), ExitStatus::kNotFound);
}

}  // namespace
}  // namespace assay
