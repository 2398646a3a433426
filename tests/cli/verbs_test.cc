// Verbs that say what there is: of runs, nodes, sets and submission files; and -o tpl.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "cli/run/run_replay.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSound[] = R"(round = "hpc-3.0.0"
benchmark = "cosmoflow"
division = "closed"
organization = "Example University"
system = "cluster-a"
dataset = "cosmo32"
nodes = 2

[hyperparameters]
opt_name = "sgd"
)";

class VerbsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
  }

  nlohmann::json Items(const std::string& line) {
    EXPECT_EQ(run_.Run(line + " --json"), ExitStatus::kDone) << run_.err;
    return nlohmann::json::parse(run_.out)["items"];
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

// --------------------------------------------------------------------------------------- -o tpl

TEST_F(VerbsTest, ATemplateIsFilledForEachItem) {
  EXPECT_EQ(run_.RunWords({"run", "list", "-o", R"(tpl={id}\t{{{state}}})"}), ExitStatus::kDone)
      << run_.err;
  EXPECT_EQ(run_.out, "r-1\t{succeeded}\nr-2\t{succeeded}\nr-3\t{succeeded}\nr-4\t{running}\n");

  EXPECT_EQ(run_.RunWords({"entry", "show", "e-1", "-o", "tpl={id}: {hyperparameters.opt_name}"}),
            ExitStatus::kDone);
  EXPECT_EQ(run_.out, "e-1: sgd\n");
  EXPECT_EQ(run_.RunWords({"run", "list", "-o", "tpl={id}={seconds}"}), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("r-4=\n")) << "what is not known yet is empty";
}

TEST_F(VerbsTest, AWrongTemplateSaysWhereAndWhatThereIs) {
  const std::pair<const char*, const char*> kCases[] = {
      {"tpl={id", "a { without its } at character 1"},
      {"tpl=id}", "a } without its { at character 3"},
      {"tpl={}", "{} without a field at character 1"},
      {"tpl={staet}", "there is no field 'staet'; did you mean 'state'?"}};
  for (const auto& [output, message] : kCases) {
    EXPECT_EQ(run_.RunWords({"run", "list", "-o", output}), ExitStatus::kUsage) << output;
    EXPECT_THAT(run_.err, HasSubstr(message)) << output;
    EXPECT_EQ(run_.out, "") << output;
  }
  EXPECT_EQ(run_.RunWords({"run", "list", "-o", "tpl={id}", "--jq", ".items"}), ExitStatus::kUsage);
}

// ------------------------------------------------------------------------------------------ runs

TEST_F(VerbsTest, ArtifactsIsTheOtherNameOfFiles) {
  run_.Run("run files r-1");
  const std::string files = run_.out;
  EXPECT_EQ(run_.Run("run artifacts r-1"), ExitStatus::kDone);
  EXPECT_EQ(run_.out, files);
  EXPECT_EQ(run_.Run("run artifacts r-1 result_1.txt"), ExitStatus::kDone);
  EXPECT_EQ(run_.out, "log of run 1\n");
}

TEST_F(VerbsTest, TheLedgerHasEveryAttempt) {
  v1::Run& failed = coordinator_.runs[1];
  failed.set_state(v1::Run::FAILED);
  failed.set_state_reason("worker w1 was lost");

  const nlohmann::json items = Items("run ledger s-1");

  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0]["id"], "r-1");
  EXPECT_EQ(items[1]["outcome"], "failed: not judged");
  EXPECT_EQ(items[1]["state_reason"], "worker w1 was lost");
  EXPECT_THAT(run_.err, HasSubstr("3 attempts: 2 judged, 1 failed, 0 cancelled"));
  EXPECT_EQ(run_.Run("run ledger e-9"), ExitStatus::kNotFound);
}

TEST_F(VerbsTest, AReplayIntoAPipeDoesNotWait) {
  for (const int64_t day : {1, 2, 3}) {
    v1::RunEvent& event = coordinator_.run_events.emplace_back();
    event.set_seq(day);
    event.set_kind(v1::RunEvent::LOG_LINE);
    event.set_text(absl::StrCat("line ", day));
    event.set_wall_us(day * 86'400'000'000);
  }

  EXPECT_EQ(run_.Run("run replay r-1"), ExitStatus::kDone) << run_.err;

  EXPECT_THAT(run_.out, AllOf(HasSubstr("+0.000  line 1"), HasSubstr("+172800.000  line 3")));
}

TEST(ReplayPauseTest, IsThatOfTheRunDividedByTheSpeed) {
  EXPECT_EQ(ReplayPause(1'000'000, 4'000'000, 1), absl::Seconds(3));
  EXPECT_EQ(ReplayPause(1'000'000, 4'000'000, 60), absl::Milliseconds(50));
  EXPECT_EQ(ReplayPause(0, 4'000'000, 1), absl::ZeroDuration()) << "the first";
  EXPECT_EQ(ReplayPause(1'000'000, 0, 1), absl::ZeroDuration()) << "no stamp";
  EXPECT_EQ(ReplayPause(4'000'000, 1'000'000, 1), absl::ZeroDuration()) << "another node's clock";
}

// ----------------------------------------------------------------------------------------- nodes

TEST_F(VerbsTest, FactsAreWhatTheAgentTells) {
  (*coordinator_.workers[0].mutable_labels())["rack"] = "7";
  (*coordinator_.workers[0].mutable_operator_labels())["rack"] = "8";

  run_.Run("node facts w0");

  EXPECT_THAT(run_.out,
              AllOf(HasSubstr("host\tnode-7.example.org\n"), HasSubstr("cores\t64\n"),
                    HasSubstr("labels.rack\t7\n"), HasSubstr("system_description.cooling\tair\n")));
  EXPECT_THAT(run_.out, AllOf(Not(HasSubstr("r-4")), Not(HasSubstr("\t8\n"))));
}

TEST_F(VerbsTest, LabelsAreGivenAndTakenAway) {
  (*coordinator_.workers[0].mutable_labels())["rack"] = "7";

  EXPECT_EQ(run_.Run("node label w0 rack=8 switch=ib -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(run_.out, "w0 has the labels rack=8, switch=ib\n");
  EXPECT_EQ(run_.Run("node label w0 rack- switch- -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(run_.out, "w0 has the labels rack=7\n") << "the agent's own";

  EXPECT_EQ(run_.Run("node label w0 rack-"), ExitStatus::kNotFound);
  EXPECT_THAT(run_.err, HasSubstr("its agent tells it"));
  EXPECT_EQ(run_.Run("node label w0 rack"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("KEY=VALUE gives one, KEY- takes it away"));
}

TEST_F(VerbsTest, TheDoctorOfANodeSaysWhatHelps) {
  for (v1::Worker& worker : coordinator_.workers)
    worker.set_version("9.9.9");
  EXPECT_EQ(run_.Run("node doctor w0"), ExitStatus::kDone) << run_.out;
  EXPECT_THAT(run_.out, HasSubstr("executes r-4"));

  coordinator_.workers[1].set_state(v1::Worker::DRAINING);
  coordinator_.workers[1].set_state_reason("new kernel");
  EXPECT_EQ(run_.Run("node doctor w1"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("drained: new kernel"), HasSubstr("node resume w1")));

  coordinator_.workers[1].set_state(v1::Worker::LOST);
  EXPECT_EQ(run_.Run("node doctor w1"), ExitStatus::kFailed);
  EXPECT_THAT(run_.out, HasSubstr("journalctl"));
}

// --------------------------------------------------------------------------------------- entries

TEST_F(VerbsTest, AFileIsJudgedWithoutACoordinator) {
  coordinator_.Stop();
  run_.Write("sound.toml", kSound);
  EXPECT_EQ(run_.Run("entry validate sound.toml"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.err, HasSubstr("assay plan sound.toml"));

  std::string text = kSound;
  text.replace(text.find("\"sgd\""), 5, "\"adamw\"");
  run_.Write("adamw.toml", text);
  EXPECT_EQ(run_.Run("entry validate adamw.toml"), ExitStatus::kRuleViolation);
  EXPECT_THAT(run_.err, AllOf(HasSubstr("adamw.toml:10:12: error R-HP-004"),
                              HasSubstr("1 error, 0 warnings")));
  EXPECT_EQ(run_.Run("entry validate adamw.toml --json"), ExitStatus::kRuleViolation);
  EXPECT_EQ(nlohmann::json::parse(run_.out)["findings"][0]["line"], 10);

  run_.Write("broken.toml", "nodes = 'two'\n");
  EXPECT_EQ(run_.Run("entry validate broken.toml"), ExitStatus::kUsage);
}

TEST_F(VerbsTest, CreateSubmitsAndDoesNotWait) {
  run_.Write("sound.toml", kSound);

  EXPECT_EQ(run_.Run("entry create sound.toml -o tpl={id}"), ExitStatus::kDone) << run_.err;

  EXPECT_EQ(run_.out, "e-3\n");
  EXPECT_EQ(run_.Run("entry create sound.toml --wait"), ExitStatus::kUsage);
}

TEST_F(VerbsTest, ADiffShowsWhatWasSubmittedDifferently) {
  coordinator_.entries[0].mutable_spec()->set_node_count(4);
  coordinator_.entries[0].set_score_minutes(99);

  EXPECT_EQ(run_.Run("entry diff e-1 e-2"), ExitStatus::kDifferent) << run_.err;
  EXPECT_EQ(run_.out, "field\ta\tb\nnodes\t2\t4\n");
  coordinator_.entries[0].mutable_spec()->set_node_count(2);
  EXPECT_EQ(run_.Run("entry diff e-1 e-2"), ExitStatus::kDone);

  run_.Write("sound.toml", kSound);
  EXPECT_EQ(run_.Run("entry diff sound.toml e-1"), ExitStatus::kDifferent);
  EXPECT_THAT(run_.out, HasSubstr("round\thpc-3.0.0\tcosmoflow-mini\n"));
  EXPECT_EQ(run_.Run("entry diff e-1 e-1"), ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("entry diff nothing.toml e-1"), ExitStatus::kNotFound);
}

TEST_F(VerbsTest, AWithdrawnEntrySaysSoAndIsNotExported) {
  EXPECT_EQ(run_.RunWords({"entry", "withdraw", "e-1", "--reason", "mis-cabled", "-o", "table"}),
            ExitStatus::kDone)
      << run_.err;
  EXPECT_EQ(run_.out, "e-1 is withdrawn by alice: mis-cabled\n");

  run_.Run("entry list -o table");
  EXPECT_THAT(run_.out, HasSubstr("WITHDRAWN"));
  run_.Run("entry show e-1 -o table");
  EXPECT_THAT(run_.out, HasSubstr("mis-cabled"));
  EXPECT_EQ(run_.Run("entry export e-1 out"), ExitStatus::kConflict);
  EXPECT_THAT(run_.err, HasSubstr("what is withdrawn is not handed in"));
}

// ------------------------------------------------------------------------------------------ sets

TEST_F(VerbsTest, TheWindowNamesThePartOfEachRun) {
  EXPECT_EQ(run_.Run("set window s-1 --json"), ExitStatus::kDone) << run_.err;

  const nlohmann::json window = nlohmann::json::parse(run_.out);
  EXPECT_EQ(window["schema"], "assay.window/v1");
  EXPECT_EQ(window["run_details"].size(), 3u);
  for (const nlohmann::json& run : window["run_details"])
    EXPECT_NE(run["part"], "") << run;
}

}  // namespace
}  // namespace assay::cli
