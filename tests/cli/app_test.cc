#include "cli/app.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "cli/command/command.h"
#include "cli/command/completion.h"
#include "cli/command/help.h"
#include "cli/terminal/print.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AppTest, MisspeltWordsGetASuggestion) {
  const std::pair<const char*, const char*> kCorpus[] = {
      {"sumbit x", "'submit'"},
      {"entyr list", "'entry'"},
      {"entry lst", "'list'"},
      {"entry lits", "'list'"},
      {"entry list -o jsn", "'json'"},
      {"entry shwo e-1", "'show'"},
      {"nodes list", "'node'"},
      {"run log r-1", "'logs'"},
      {"wiat e-1", "'wait'"},
      {"stauts", "'status'"},
      {"whi e-1", "'why'"},
      {"datset list", "'dataset'"},
      {"rule list", "'rules'"},
      {"rules chekc x", "'check'"},
      {"admin tokn create", "'token'"},
      {"admin token creat", "'create'"},
      {"quickstrt", "'quickstart'"},
      {"docter", "'doctor'"},
      {"complet bash", "'completion'"},
      {"confg list", "'config'"},
      {"Submit x", "'submit'"},
      {"canel e-1", "'cancel'"},
      {"entry list --divison x", "'--division'"},
      {"logs r-1 --folow", "'--follow'"},
      {"submit x --wiat", "'--wait'"},
      {"entry list --outptu json", "'--output'"}};
  testing::Invocation run;
  for (const auto& [line, suggestion] : kCorpus) {
    EXPECT_EQ(run.Run(line), ExitStatus::kUsage) << line;
    EXPECT_THAT(run.err, HasSubstr(absl::StrCat("did you mean ", suggestion))) << line;
    EXPECT_EQ(run.out, "") << line;
  }
}

TEST(AppTest, AWrongTypeIsAUsageErrorThatSaysWhatIsTaken) {
  const std::pair<const char*, const char*> kCases[] = {
      {"entry list --limit abc", "--limit: 'abc' is no whole number; 1 to"},
      {"entry list -n -5", "--limit: -5 is not in range; 1 to"},
      {"wait e-1 --timeout soon", "--timeout: 'soon' is not a duration; write 90s"},
      {"wait e-1 --timeout", "--timeout needs a value; see 'assay wait --help'"},
      {"entry show", "ID is required; see 'assay entry show --help'"},
      {"list", "it follows a noun, as in 'assay entry list'"}};
  testing::Invocation run;
  for (const auto& [line, message] : kCases) {
    EXPECT_EQ(run.Run(line), ExitStatus::kUsage) << line;
    EXPECT_THAT(run.err, HasSubstr(message)) << line;
  }
}

TEST(AppTest, NonsenseGetsNoSuggestion) {
  testing::Invocation run;

  EXPECT_EQ(run.Run("xyzzyx"), ExitStatus::kUsage);
  EXPECT_THAT(run.err, Not(HasSubstr("did you mean")));
}

TEST(AppTest, EveryCommandHasHelpWithAnExampleThatParses) {
  testing::Invocation run;
  for (const cli::Command& command : cli::CommandTable()) {
    ASSERT_FALSE(command.examples.empty()) << command.path;
    EXPECT_EQ(run.Run(absl::StrCat(command.path, " --help")), ExitStatus::kDone);
    EXPECT_THAT(run.out, HasSubstr(absl::StrCat("$ ", command.examples[0].command)));
    EXPECT_FALSE(absl::EndsWith(command.summary, ".")) << command.path;
    bool is_used = false;
    for (const cli::Example& example : command.examples)
      is_used = is_used || absl::StrContains(example.command, "assay " + command.path);
    EXPECT_TRUE(is_used) << command.path << ": no example shows it";
  }
}

TEST(AppTest, HelpFitsTheTerminal) {
  testing::Invocation run;
  for (const int width : {60, 80, 200}) {
    run.env.width = width;
    run.Run("--help");
    for (const absl::string_view line : absl::StrSplit(run.out, '\n')) {
      if (absl::StrContains(line, "$ ")) continue;
      EXPECT_LE(cli::DisplayWidth(line), width) << line;
    }
  }
}

TEST(AppTest, TopicsAndNounsExplainThemselves) {
  testing::Invocation run;
  for (const cli::HelpTopic& topic : cli::HelpTopics())
    EXPECT_EQ(run.Run(absl::StrCat("help ", topic.name)), ExitStatus::kDone) << topic.name;
  EXPECT_EQ(run.Run("entry"), ExitStatus::kDone);
  EXPECT_THAT(run.out, HasSubstr("assay entry list"));
  EXPECT_EQ(run.Run("help exit-code"), ExitStatus::kNotFound);
  EXPECT_THAT(run.err, HasSubstr("'exit-codes'"));
  EXPECT_EQ(run.Run("help run logs"), ExitStatus::kDone);
}

TEST(AppTest, WithoutCoordinatorTheRemedyIsNamed) {
  testing::Invocation run;

  EXPECT_EQ(run.Run("entry list"), ExitStatus::kUnreachable);
  EXPECT_THAT(run.err, HasSubstr("assay dev"));
}

TEST(AppTest, ColourOnlyWhereItIsWanted) {
  struct Case {
    const char* name;
    bool is_tty;
    std::vector<std::pair<std::string, std::string>> variables;
    const char* flag;
    bool has_color;
  };
  const Case kCases[] = {
      {"terminal", true, {}, "", true},
      {"pipe", false, {}, "", false},
      {"NO_COLOR", true, {{"NO_COLOR", "1"}}, "", false},
      {"dumb", true, {{"TERM", "dumb"}}, "", false},
      {"forced", false, {{"CLICOLOR_FORCE", "1"}}, "", true},
      {"NO_COLOR wins", true, {{"NO_COLOR", "1"}, {"CLICOLOR_FORCE", "1"}}, "", false},
      {"flag wins", false, {{"NO_COLOR", "1"}}, " --color=always", true},
      {"never", true, {}, " --color=never", false}};
  for (const Case& c : kCases) {
    testing::Invocation run;
    run.env.is_out_tty = c.is_tty;
    for (const auto& [name, value] : c.variables)
      run.env.variables[name] = value;
    run.Run(absl::StrCat("config list -o table", c.flag));
    EXPECT_EQ(absl::StrContains(run.out, "\033["), c.has_color) << c.name;
  }
}

TEST(AppTest, PlainLocaleGetsPlainText) {
  testing::Invocation run;
  run.env.variables["LANG"] = "C";

  run.Run("doctor -o table --color never");

  for (const char c : run.out)
    EXPECT_LT(static_cast<unsigned char>(c), 0x80U) << run.out;
}

TEST(AppTest, CompletionKnowsEveryCommand) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = cli::CompletionScript(shell);
    for (const cli::Command& command : cli::CommandTable()) {
      const std::string last = command.path.substr(command.path.rfind(' ') + 1);
      EXPECT_THAT(script, HasSubstr(last)) << shell;
    }
  }
  EXPECT_EQ(cli::CompletionScript("tcsh"), "");
}

TEST(AppTest, ManPagesAreWrittenForEveryCommand) {
  testing::Invocation run;

  EXPECT_EQ(run.Run("man pages"), ExitStatus::kDone);
  EXPECT_TRUE(FileExists(run.home.Path("pages/man1/assay.1")));
  EXPECT_TRUE(FileExists(run.home.Path("pages/man1/assay-admin-token-create.1")));
  EXPECT_THAT(ReadFile(run.home.Path("pages/man1/assay-submit.1")).value_or(""),
              HasSubstr(".SH EXIT STATUS"));
  EXPECT_THAT(ReadFile(run.home.Path("pages/man5/assay-submission.5")).value_or(""),
              HasSubstr("ranks_per_node"));
  EXPECT_THAT(ReadFile(run.home.Path("pages/man5/assay-round.5")).value_or(""),
              HasSubstr("quality_key"));
}

TEST(AppTest, ExitStatusTableIsFrozen) {
  std::vector<int> numbers;
  for (const cli::ExitStatusRow& row : cli::ExitStatusTable())
    numbers.push_back(static_cast<int>(row.status));
  EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 130}));
}

TEST(AppTest, AdminInitNeverOverwritesKeys) {
  testing::Invocation run;

  EXPECT_EQ(run.Run("admin init etc --host bench.example.org"), ExitStatus::kDone) << run.err;
  const std::string key = ReadFile(run.home.Path("etc/ca.key")).value_or("");
  EXPECT_THAT(key, HasSubstr("PRIVATE KEY"));
  EXPECT_THAT(ReadFile(run.home.Path("etc/worker.textproto")).value_or(""),
              HasSubstr("bench.example.org:7443"));

  EXPECT_EQ(run.Run("admin init etc"), ExitStatus::kConflict);
  EXPECT_EQ(ReadFile(run.home.Path("etc/ca.key")).value_or(""), key);
}

int ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return static_cast<int>(info.st_mode & 07777);
}

// The daemon of the unit is not root: it has to read its key by its group.
TEST(AppTest, AdminInitLetsTheDaemonsGroupRead) {
  testing::Invocation run;
  const group* const own = getgrgid(getgid());
  ASSERT_NE(own, nullptr) << "whoever runs the tests is in no group of this machine";

  ASSERT_EQ(run.Run(absl::StrCat("admin init etc --group ", own->gr_name)), ExitStatus::kDone)
      << run.err;

  EXPECT_EQ(ModeOf(run.home.Path("etc")), 0750);
  for (const char* name : {"ca.key", "server.key", "assayd.textproto"})
    EXPECT_EQ(ModeOf(run.home.Path(absl::StrCat("etc/", name))), 0640) << name;
}

TEST(AppTest, AdminInitWritesNothingForAGroupThatIsNotThere) {
  testing::Invocation run;

  EXPECT_EQ(run.Run("admin init etc --group no-such-group"), ExitStatus::kNotFound);
  EXPECT_THAT(run.err, HasSubstr("no-such-group"));
  EXPECT_FALSE(FileExists(run.home.Path("etc")));
}

}  // namespace
}  // namespace assay
