// Processes are killed while a run is under way.

#include <csignal>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "common/sha256.h"
#include "tests/e2e/site.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Minutes(5);

// An entry whose runs never reach the target.
SubmissionText Endless(int epochs) {
  SubmissionText text = {.epochs_max = epochs};
  text.base_learning_rate = "0.000001";
  return text;
}

class SurvivalTest : public ::testing::Test {
 protected:
  SurvivalTest() : coordinator_(&site_), log_(site_.Path("log.fifo")) {
    ProvideBeacons(site_, "small", 128, 16);
  }
  // Only the first run is looked at.
  ~SurvivalTest() override {
    const Outcome cancelled = site_.Assay({"cancel", "@last"});
    EXPECT_THAT(cancelled.exit_code, AnyOf(0, 8)) << cancelled.Text();  // 8: it is over already
  }

  // Submits, and follows the log of the first run.
  void Begin(int epochs) {
    const Outcome submitted =
        site_.Assay({"submit", WriteSubmission(site_, "endless.toml", Endless(epochs))});
    ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
    follower_ = Follow(log_.path());
  }
  ProcessId Follow(const std::string& output) const {
    return site_.Start({site_.Program("assay"), "logs", "r-1", "--follow", "--quiet"}, output);
  }
  // Waits until the log says that epoch `number` has begun.
  bool AwaitEpoch(int number) {
    return log_.WaitFor(absl::StrCat(R"("epoch_num": )", number, "}")).has_value();
  }
  // The process of the one trainer rank on `worker`.
  ProcessId Trainer(const std::string& worker) const { return Recorded(worker, "trainers.json"); }
  // The one process that `file` of the first run on `worker` names.
  ProcessId Recorded(const std::string& worker, const std::string& file) const {
    const absl::StatusOr<std::string> text =
        ReadFile(site_.Path(absl::StrCat("data/agents/", worker, "/data/runs/r-1-g1/", file)));
    EXPECT_THAT(text, IsOk());
    const Json json = Json::parse(text.value_or("{}"), nullptr, false);
    if (!json.contains("processes") || json["processes"].size() != 1) {
      ADD_FAILURE() << json;
      return {};
    }
    return {json["processes"][0]["pid"], json["processes"][0]["start_ticks"]};
  }

  Site site_;
  Coordinator coordinator_;
  LogTail log_;
  ProcessId follower_;
};

// Nobody dies: what a run's nodes do is seen while it goes on, and no longer.
TEST_F(SurvivalTest, TopShowsWhatARunningRunsNodesDo) {
  constexpr int kEpochs = 100'000;
  Begin(kEpochs);
  ASSERT_TRUE(AwaitEpoch(2));
  Json top;
  const auto is_each = [&](auto is_it) {
    top = site_.AssayJson({"top", "--sort", "name"});
    return top["nodes"].size() == 2 && is_it(top["nodes"][0]) && is_it(top["nodes"][1]);
  };
  ASSERT_TRUE(Await([&] {
    return is_each([](const Json& node) {
             return node.contains("figures") && node["figures"].contains("run_cpu_share");
           }) &&
           top["runs"][0].value("epoch", 0) >= 2;
  })) << top;
  EXPECT_EQ(top["runs"][0]["id"], "r-1");
  EXPECT_EQ(top["runs"][0]["state"], "running");
  EXPECT_TRUE(top["runs"][0].contains("quality")) << top;
  for (const Json& node : top["nodes"]) {
    const Json& figures = node["figures"];
    EXPECT_EQ(node["run"], "r-1");
    EXPECT_GT(figures["run_cpu_share"], 0) << node;
    EXPECT_LE(figures["run_cpu_share"].get<double>() + figures.value("other_cpu_share", 2.0),
              1.001);
    EXPECT_GT(figures["memory_total_bytes"], figures["memory_used_bytes"]) << node;
    EXPECT_LT(figures["age_seconds"], 60) << node;
  }
  const Outcome listing = site_.Assay({"top", "-o", "table"});
  EXPECT_THAT(listing.out, AllOf(HasSubstr("1 run on 2 of 2 nodes"), HasSubstr(" %")));

  EXPECT_EQ(site_.Assay({"cancel", "@last"}).exit_code, 0);
  EXPECT_TRUE(Await([&] {
    return is_each([](const Json& node) { return !node.contains("figures"); });
  })) << top;
}

TEST_F(SurvivalTest, LosesNothingWhenCoordinatorAndAgentAreKilled) {
  constexpr int kEpochs = 60;
  Begin(kEpochs);
  const std::string copy = site_.Path("followed.txt");
  const ProcessId second_follower = Follow(copy);
  ASSERT_TRUE(AwaitEpoch(2));
  const ProcessId trainers[] = {Trainer("local-0"), Trainer("local-1")};
  const ProcessId agents[] = {coordinator_.Agent("local-0"), coordinator_.Agent("local-1")};

  // A trainer is held meanwhile: a fast machine would be through all epochs before the others are
  // back.
  ASSERT_EQ(kill(trainers[0].pid, SIGSTOP), 0);
  coordinator_.Kill();
  coordinator_.Start();
  ASSERT_EQ(kill(trainers[0].pid, SIGCONT), 0);
  ASSERT_TRUE(AwaitEpoch(8)) << "the log does not go on after the coordinator's restart";
  EXPECT_EQ(coordinator_.Agent("local-0"), agents[0]) << "an agent outlives its coordinator";

  ASSERT_EQ(kill(trainers[0].pid, SIGSTOP), 0) << "the run ended before the agent was killed";
  ASSERT_THAT(SignalGroup(agents[0], SIGKILL), IsOk());
  ASSERT_TRUE(coordinator_.AwaitLogLine("agent started worker=local-0"));
  EXPECT_NE(coordinator_.Agent("local-0"), agents[0]);
  EXPECT_TRUE(IsRunning(trainers[0]));
  ASSERT_EQ(kill(trainers[0].pid, SIGCONT), 0);
  ASSERT_TRUE(AwaitEpoch(kEpochs)) << "the log does not go on after the agent's restart";
  EXPECT_EQ(Trainer("local-0"), trainers[0]);
  EXPECT_EQ(Trainer("local-1"), trainers[1]);

  EXPECT_THAT(WaitForExit(follower_, kPatience), IsOkAndHolds(0));
  EXPECT_THAT(WaitForExit(second_follower, kPatience), IsOkAndHolds(0));
  const Json run = site_.AssayJson({"run", "show", "r-1"});
  EXPECT_EQ(run["state"], "succeeded") << run;
  EXPECT_EQ(run["converged"], false) << run;
  EXPECT_EQ(run["epochs"], kEpochs) << run;

  const Json artifact = ResultArtifact(run);
  ASSERT_FALSE(artifact.is_null()) << run;
  EXPECT_EQ(Sha256Hex(site_.Assay({"logs", "r-1"}).out), artifact["sha256"]);
  EXPECT_EQ(Sha256Hex(ReadFile(copy).value_or("")), artifact["sha256"])
      << "who followed the log has seen something else";
  EXPECT_EQ(ExpectNoGaps(site_, "r-1", 0), run["events"]);
  EXPECT_GT(ExpectNoGaps(site_, "r-1", 1), 0) << "the other node has witnessed a first touch too";
}

// As scancel does, or the end of a container: all agents, steps and ranks at once.
TEST_F(SurvivalTest, KnowsTheEndOfARunWhoseNodesAreToldToEnd) {
  Begin(/*epochs=*/1000);
  ASSERT_TRUE(AwaitEpoch(2));
  std::vector<ProcessId> doomed;
  for (const char* worker : {"local-0", "local-1"})
    for (const ProcessId& process :
         {coordinator_.Agent(worker), Recorded(worker, "step.json"), Trainer(worker)})
      doomed.push_back(process);
  for (const ProcessId& process : doomed)
    ASSERT_EQ(kill(process.pid, SIGTERM), 0);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(coordinator_.AwaitLogLine("agent ended worker=local-"));

  // The launcher has not yet started them again.
  const Json run = site_.AssayJson({"run", "show", "r-1"});
  EXPECT_EQ(run["state"], "failed") << "the agents left without a word: " << run;
  EXPECT_THAT(run["state_reason"].get<std::string>(),
              AnyOf(HasSubstr("stopped on request"), HasSubstr("lost contact with another rank")));
  for (const ProcessId& process : doomed)
    EXPECT_FALSE(IsRunning(process));
}

TEST_F(SurvivalTest, FailsARunThatLosesATrainer) {
  Begin(/*epochs=*/1000);
  ASSERT_TRUE(AwaitEpoch(2));
  const ProcessId lost = Trainer("local-1");
  ASSERT_GT(lost.pid, 1);
  ASSERT_EQ(kill(lost.pid, SIGKILL), 0);
  EXPECT_THAT(WaitForExit(follower_, absl::Minutes(1)), IsOkAndHolds(0));
  const Json run = site_.AssayJson({"run", "show", "r-1"});
  EXPECT_EQ(run["state"], "failed") << run;
  EXPECT_THAT(run["state_reason"].get<std::string>(),
              AnyOf(HasSubstr("signal 9"), HasSubstr("lost contact with another rank")));
  EXPECT_FALSE(IsRunning(lost));
}

}  // namespace
}  // namespace assay::testing
