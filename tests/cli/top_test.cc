// `assay top`: what it shows of runs and nodes, in how much room.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "cli/terminal/print.h"
#include "cli/top/activity.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class TopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    v1::NodeFigures& first = *coordinator_.workers[0].mutable_figures();
    first.set_age_ms(1240);
    first.set_run_cpu_share(0.834);
    first.set_other_cpu_share(0.021);
    first.set_memory_used_bytes(56'300'000'000);
    first.set_memory_total_bytes(256'000'000'000);
    first.set_storage_read_bytes_per_s(512'400'000);
    first.set_storage_written_bytes_per_s(0);
    first.set_network_received_bytes_per_s(1'234'000);
    first.set_network_sent_bytes_per_s(1'198'000);
    first.set_node_watts(812.4);
    first.set_epoch(3);
    first.set_quality(0.4125);
    coordinator_.workers[1].set_run("runs/r-4");
    v1::NodeFigures& second = *coordinator_.workers[1].mutable_figures();
    second.set_age_ms(4000);
    second.set_run_cpu_share(0.9);
    v1::Worker idle;
    idle.set_name("workers/w2");
    idle.set_state(v1::Worker::SUSPECT);
    coordinator_.workers.push_back(idle);
    v1::Worker gone;
    gone.set_name("workers/w3");
    gone.set_state(v1::Worker::GONE);
    coordinator_.workers.push_back(gone);
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
    run_.clock.StepWall(
        absl::FromUnixSeconds(coordinator_.runs.back().start_time().seconds() + 3753) -
        run_.clock.Wall());
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(TopTest, RunsComeFirstThenTheNodesThatDoMost) {
  run_.env.width = 120;
  EXPECT_EQ(run_.Run("top -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(run_.out, R"(1 run on 2 of 3 nodes, 1 suspect

RUN  ENTRY  BENCHMARK  ORGANIZATION        STATE    NODES  EPOCH  QUALITY     TIME
r-4  e-2    cosmoflow  Example University  running      2      3   0.4125  1:02:33

NODE  STATE    RUN   CPU  OTHERS  MEMORY  NODE W  READ/s  WRITE/s    IN/s   OUT/s    AGE
w1    alive    r-4  90 %                                                           4.0 s
w0    alive    r-4  83 %     2 %   56 GB   812.4  512 MB      0 B  1.2 MB  1.2 MB  1.2 s
w2    suspect
)");
}

TEST_F(TopTest, FitsAnyWidthAndKeepsWhatMattersMost) {
  for (const int width : {40, 60, 80, 100, 200}) {
    run_.env.width = width;
    EXPECT_EQ(run_.Run("top --once -o table"), ExitStatus::kDone) << run_.err;
    for (const absl::string_view line : absl::StrSplit(run_.out, '\n'))
      EXPECT_LE(cli::DisplayWidth(line), width) << line;
    EXPECT_THAT(run_.out, AllOf(HasSubstr("TIME"), HasSubstr("CPU"), HasSubstr("83 %")));
  }
  run_.env.width = 80;
  EXPECT_EQ(run_.Run("top -o table"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("READ/s"), HasSubstr("QUALITY")));
}

TEST_F(TopTest, NodesAreSortedByTheKeyAndThoseThatDoNotTellComeLast) {
  const auto nodes = [this](const std::string& key) {
    EXPECT_EQ(run_.Run(absl::StrCat("top -o plain --no-header --sort ", key)), ExitStatus::kDone)
        << run_.err;
    std::vector<std::string> names;
    for (const absl::string_view line : absl::StrSplit(run_.out, '\n', absl::SkipEmpty()))
      names.emplace_back(line.substr(0, line.find('\t')));
    return names;
  };
  EXPECT_THAT(nodes("cpu"), ElementsAre("w1", "w0", "w2"));
  EXPECT_THAT(nodes("others"), ElementsAre("w0", "w1", "w2"));
  EXPECT_THAT(nodes("name"), ElementsAre("w0", "w1", "w2"));
  EXPECT_EQ(run_.Run("top --sort tea"), ExitStatus::kUsage);
}

TEST_F(TopTest, JsonHasRunsAndNodesWithTheirFiguresAndNoneThatIsNotKnown) {
  ASSERT_EQ(run_.Run("top --json"), ExitStatus::kDone) << run_.err;
  const nlohmann::json json = nlohmann::json::parse(run_.out);
  EXPECT_EQ(json["schema"], "assay.top/v1");
  ASSERT_THAT(json["runs"], SizeIs(1));
  EXPECT_EQ(json["runs"][0]["benchmark"], "cosmoflow");
  EXPECT_EQ(json["runs"][0]["epoch"], 3);
  EXPECT_EQ(json["runs"][0]["quality"], 0.4125);
  EXPECT_EQ(json["runs"][0]["elapsed_seconds"], 3753);
  ASSERT_THAT(json["nodes"], SizeIs(3));
  EXPECT_EQ(json["nodes"][1]["figures"]["storage_written_bytes_per_s"], 0.0)
      << "known, and nothing";
  EXPECT_EQ(json["nodes"][1]["figures"]["age_seconds"], 1.24);
  EXPECT_FALSE(json["nodes"][0]["figures"].contains("node_watts"));
  EXPECT_FALSE(json["nodes"][2].contains("figures"));
}

TEST_F(TopTest, WithoutARunItSaysSo) {
  coordinator_.runs.clear();
  for (v1::Worker& worker : coordinator_.workers) {
    worker.clear_run();
    worker.clear_figures();
  }
  EXPECT_EQ(run_.Run("top -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_EQ(run_.out, R"(no run goes on; 3 nodes, 1 suspect

NODE  STATE
w0    alive
w1    alive
w2    suspect
)");
}

TEST_F(TopTest, AnIntervalThatWouldBeAFloodIsRefused) {
  EXPECT_EQ(run_.Run("top --interval 0"), ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("top --interval 2h"), ExitStatus::kUsage);
}

// A submitter knows of nodes that others use, and nothing of what they do there.
TEST_F(TopTest, NodesOfOthersAreNotCounted) {
  coordinator_.workers[1].set_run("runs/r-77");
  coordinator_.workers[1].clear_figures();
  EXPECT_EQ(run_.Run("top -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, HasSubstr("1 run on 1 of 3 nodes, 1 suspect\n"));
}

// Of a fleet: `run_count` runs on `node_count` nodes.
cli::Activity Fleet(int run_count, int node_count) {
  cli::Activity activity;
  for (int i = 0; i < run_count; ++i) {
    v1::Run run;
    run.set_name(absl::StrCat("runs/r-", i));
    run.set_submission("submissions/e-1");
    run.set_state(v1::Run::RUNNING);
    activity.runs.push_back(run);
  }
  for (int i = 0; i < node_count; ++i) {
    v1::Worker node;
    node.set_name(absl::StrCat("workers/n", i));
    node.set_state(v1::Worker::ALIVE);
    activity.nodes.push_back(node);
  }
  return activity;
}

std::vector<std::string> Lines(const cli::Activity& activity, size_t height_max,
                               const std::string& problem = "") {
  const testing::Invocation surroundings;
  return cli::ActivityLines(cli::ActivityJson(activity, "cpu", absl::UnixEpoch()), surroundings.env,
                            {}, height_max, problem);
}

TEST(ActivityTest, WhatDoesNotFitTheTerminalIsCounted) {
  EXPECT_THAT(Lines(Fleet(1, 1000), 24),
              AllOf(SizeIs(24), Contains(HasSubstr("r-0")), Contains("983 more")));
  // Neither pushes the other out.
  EXPECT_THAT(Lines(Fleet(1000, 1000), 25), AllOf(SizeIs(25), Contains("991 more").Times(2)));
  // Room that nodes do not need is for runs.
  EXPECT_THAT(Lines(Fleet(1000, 1), 24), AllOf(SizeIs(24), Contains(StartsWith("n0"))));
  EXPECT_THAT(Lines(Fleet(3, 4), 24), Not(Contains(HasSubstr("more"))));
  for (const size_t height : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U})
    EXPECT_THAT(Lines(Fleet(9, 9), height, "the coordinator is away").size(),
                Le(std::max<size_t>(height, 2)));
}

TEST(ActivityTest, WhyItIsNotNewerStandsBesideWhatWasSeenLast) {
  EXPECT_THAT(Lines(Fleet(1, 1), 24, "not newer: the coordinator is away"),
              AllOf(Contains("not newer: the coordinator is away"), Contains(HasSubstr("r-0"))));
}

}  // namespace
}  // namespace assay
