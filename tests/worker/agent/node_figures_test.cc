#include "worker/agent/node_figures.h"

#include <unistd.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/run_recorder.h"
#include "worker/agent/step_process.h"
#include "worker/agent/telemetry/live_figures.h"

namespace assay::agent {
namespace {

using testing::IsOk;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMemory = 256'000'000'000;

class NodeFiguresTest : public ::testing::Test {
 protected:
  NodeFiguresTest() : directory_(*RunDirectory::ForRun(run_.worker.data_directory(), run_.key)) {
    CHECK_OK(PrepareRun(directory_, run_.spec, run_.worker, "{}"));
  }
  void Write(const LiveFigures& figures) {
    ASSERT_THAT(WriteFileAtomic(directory_.FiguresPath(), LiveFiguresText(figures)), IsOk());
  }
  std::optional<v1::NodeFigures> Read(int64_t now_ns = 100 * kSecond,
                                      const RunRecorder* recorder = nullptr) {
    return ReadNodeFigures(directory_, recorder, now_ns, kMemory);
  }

  testing::FakeClock clock_;
  RunFixture run_;
  const RunDirectory directory_;
};

TEST_F(NodeFiguresTest, WhatTheStepMeasuresReachesTheAgentWithItsAge) {
  Write({.at_ns = 98 * kSecond + kSecond / 2,
         .run_cpu_share = 0.75,
         .memory_available_bytes = 200e9,
         .storage_read_bytes_per_s = 0,
         .gpu_watts = 412.5});
  const std::optional<v1::NodeFigures> figures = Read();
  ASSERT_TRUE(figures.has_value());
  EXPECT_EQ(figures->age_ms(), 1500);
  EXPECT_EQ(figures->run_cpu_share(), 0.75);
  EXPECT_EQ(figures->memory_total_bytes(), kMemory);
  EXPECT_EQ(figures->memory_used_bytes(), 56'000'000'000);
  EXPECT_TRUE(figures->has_storage_read_bytes_per_s()) << "known, and nothing";
  EXPECT_EQ(figures->gpu_watts(), 412.5);
  EXPECT_FALSE(figures->has_other_cpu_share());
  EXPECT_FALSE(figures->has_gpu_share());
  EXPECT_FALSE(figures->has_node_watts());
  EXPECT_FALSE(figures->has_epoch()) << "the log is on another node";
}

TEST_F(NodeFiguresTest, WithoutASampleOfTheLastMinutesNothingIsSaid) {
  EXPECT_FALSE(Read().has_value()) << "the step has not begun";
  Write({.at_ns = 100 * kSecond, .run_cpu_share = 0.75});
  EXPECT_TRUE(Read(100 * kSecond).has_value());
  EXPECT_FALSE(Read(300 * kSecond).has_value()) << "the step does not measure any more";
  EXPECT_FALSE(Read(99 * kSecond).has_value()) << "of another boot";
}

// The ranks may write there where they have the step's account.
TEST_F(NodeFiguresTest, WhatTheCoordinatorWouldRefuseIsNotSent) {
  constexpr double kMuch = std::numeric_limits<double>::max();
  Write({.at_ns = 100 * kSecond,
         .run_cpu_share = 1.5,
         .other_cpu_share = kMuch,
         .memory_available_bytes = kMuch,
         .network_sent_bytes_per_s = kMuch,
         .gpu_share = 7,
         .node_watts = 1e9});
  std::optional<v1::NodeFigures> figures = Read();
  ASSERT_TRUE(figures.has_value());
  figures->clear_memory_total_bytes();
  EXPECT_EQ(figures->ByteSizeLong(), 0U) << figures->ShortDebugString();
}

TEST_F(NodeFiguresTest, NoLinkIsFollowed) {
  const std::string elsewhere = run_.worker.data_directory() + "/elsewhere";
  ASSERT_THAT(WriteFileAtomic(elsewhere, LiveFiguresText({.at_ns = 100 * kSecond})), IsOk());
  ASSERT_EQ(symlink(elsewhere.c_str(), directory_.FiguresPath().c_str()), 0);
  EXPECT_FALSE(Read().has_value());
}

TEST_F(NodeFiguresTest, TheNodeWithTheLogSaysHowFarItIs) {
  const auto record = [](const std::string& key, const std::string& value) {
    return absl::StrCat(R"(:::MLLOG {"namespace": "", "time_ms": 1704067200000, )",
                        R"("event_type": "POINT_IN_TIME", "key": ")", key, R"(", "value": )", value,
                        R"(, "metadata": {"file": "t", "lineno": 1, "epoch_num": 2}})", "\n");
  };
  ASSERT_THAT(WriteFileAtomic(directory_.ResultPath(3),
                              absl::StrCat(record("submission_benchmark", "\"cosmoflow\""),
                                           record("run_start", "null"), record("epoch_start", "1"),
                                           record("eval_error", "0.5"), record("epoch_start", "2"),
                                           record("eval_error", "0.375"))),
              IsOk());
  absl::StatusOr<std::unique_ptr<RunRecorder>> recorder =
      RunRecorder::Open(directory_, run_.key, &clock_);
  ASSERT_THAT(recorder, IsOk());
  Write({.at_ns = 100 * kSecond});
  EXPECT_FALSE(Read(100 * kSecond, recorder->get())->has_epoch()) << "not read yet";
  ASSERT_THAT((*recorder)->Observe(std::nullopt), IsOk());
  const std::optional<v1::NodeFigures> figures = Read(100 * kSecond, recorder->get());
  EXPECT_EQ(figures->epoch(), 2);
  EXPECT_EQ(figures->quality(), 0.375);
}

}  // namespace
}  // namespace assay::agent
