#include "worker/agent/workload/workload.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/run_fixture.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;
using ::testing::SizeIs;
using testing::StatusIs;

class WorkloadTest : public ::testing::Test {
 protected:
  WorkloadTest() : directory_(*RunDirectory::ForRun(run_.worker.data_directory(), run_.key)) {}

  std::unique_ptr<const Workload> Make() const {
    absl::StatusOr<std::unique_ptr<const Workload>> workload = MakeWorkload(run_.spec, directory_);
    EXPECT_THAT(workload, IsOk());
    return *std::move(workload);
  }

  RunFixture run_;
  const RunDirectory directory_;
};

// A coordinator that is newer than this agent may ask for more.
TEST_F(WorkloadTest, WhatThisAgentDoesNotKnowIsRefusedWithARemedy) {
  run_.spec.clear_workload();

  EXPECT_THAT(MakeWorkload(run_.spec, directory_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("assay-worker")));
}

TEST_F(WorkloadTest, ASpecThatMakesNoSenseForANodeIsRefused) {
  run_.spec.set_node_rank(1);

  EXPECT_THAT(MakeWorkload(run_.spec, directory_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node_rank")));
}

TEST_F(WorkloadTest, ANodeKeepsTheOutputOfItsOwnRanks) {
  run_.spec.set_node_count(2);
  run_.spec.set_node_rank(1);
  run_.spec.set_ranks_per_node(2);

  std::vector<std::string> names;
  for (const ArtifactFile& file : Make()->Collected())
    names.push_back(file.name);

  EXPECT_THAT(names, ElementsAre("trainer_2.out", "trainer_3.out"));
}

TEST_F(WorkloadTest, OnlyRankZeroGetsTheListener) {
  run_.spec.set_ranks_per_node(2);

  const std::vector<RankCommand> commands = Make()->Commands(run_.worker, {.listener_fd = 7});

  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[0].inherited_fd, 7);
  EXPECT_EQ(commands[1].inherited_fd, -1);
  EXPECT_THAT(commands[0].inputs.front().content, HasSubstr("rendezvous_listener"));
}

// Written by rank 0, which tells the others.
TEST_F(WorkloadTest, TheEnginesOfARunAreKeptByItsFirstNode) {
  const std::vector<ArtifactFile> files = Make()->Collected();
  const auto engines = std::find_if(files.begin(), files.end(), [](const ArtifactFile& file) {
    return file.name == "engines.textproto";
  });

  ASSERT_NE(engines, files.end());
  EXPECT_EQ(engines->path, directory_.RanksPath() + "/engines.textproto");
  const std::vector<RankCommand> commands = Make()->Commands(run_.worker, {});
  EXPECT_THAT(commands[0].inputs, SizeIs(1));
  EXPECT_THAT(commands[0].inputs[0].content,
              AllOf(HasSubstr("engine_choices_output: \"" + engines->path + "\""),
                    Not(HasSubstr("engine_choices_path"))));
}

TEST_F(WorkloadTest, AReplacementIsGivenTheEnginesOfTheRunBeforeItAsAFile) {
  run_.spec.set_ranks_per_node(2);
  run_.spec.set_engine_choices("device: \"NVIDIA H200\"");

  const std::vector<RankCommand> commands = Make()->Commands(run_.worker, {});

  ASSERT_THAT(commands[0].inputs, SizeIs(2));
  const InputFile& stored = commands[0].inputs[1];
  EXPECT_EQ(stored.content, "device: \"NVIDIA H200\"");
  EXPECT_THAT(
      commands[0].inputs[0].content,
      AllOf(HasSubstr("engine_choices_path: \"" + stored.path + "\""), Not(HasSubstr("NVIDIA"))));
  EXPECT_THAT(commands[1].inputs, SizeIs(1));
}

TEST_F(WorkloadTest, ATrainerCannotSayWhatOnlyTheNodeMaySay) {
  const StepExit exit = Make()->Read({1, static_cast<int>(ExitCode::kNodeFailed)});

  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kInternal));
  EXPECT_THAT(exit.reason, HasSubstr("rank 1: ended with a code of its own, 10"));
}

TEST_F(WorkloadTest, ASignalIsNamed) {
  const StepExit exit = Make()->Read({0, kSignalBase + SIGSEGV});

  EXPECT_EQ(exit.code, kSignalBase + SIGSEGV);
  EXPECT_EQ(exit.reason, "rank 0: killed by signal 11 (Segmentation fault)");
}

}  // namespace
}  // namespace assay::agent
