#include "worker/engine/backends/cuda/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/worker/engine/cuda/host_device.h"

namespace assay::cuda {
namespace {

// A section that scales a number by a factor that changes and then adds it to a sum.
class RecorderTest : public ::testing::Test {
 protected:
  void Run(float rate) {
    ASSERT_TRUE(recorder_.Begin(0).ok());
    Scale(rate);
    Add();
    ASSERT_TRUE(recorder_.End().ok());
  }

  // v <- -rate, w <- w + v.
  void Scale(float rate) {
    ASSERT_TRUE(
        recorder_.Issue(Kernel(Sgd{.rate = rate, .w = &w_, .g = &one_, .v = &v_, .count = 1}))
            .ok());
  }
  void Add() { ASSERT_TRUE(recorder_.Issue(CopyCall{.from = &w_, .to = &copy_, .bytes = 4}).ok()); }

  float w_ = 0, v_ = 0, copy_ = 0;
  const float one_ = 1;
  HostDevice device_;
  Recorder recorder_{&device_};
};

TEST_F(RecorderTest, RunsThenRecordsThenReplays) {
  for (int i = 0; i < 5; ++i)
    Run(1);

  EXPECT_EQ(copy_, -5);
  EXPECT_EQ(device_.issued(), 2);
  EXPECT_EQ(device_.graphs(), 1);
  EXPECT_EQ(device_.launches(), 4);
  EXPECT_EQ(device_.updates(), 0);
  EXPECT_EQ(recorder_.replays(), 3);
}

TEST_F(RecorderTest, ChangedArgumentsAreUpdatedInPlace) {
  for (const float rate : {1.0F, 2.0F, 3.0F, 4.0F, 4.0F, 1.0F})
    Run(rate);

  EXPECT_EQ(copy_, -15);
  EXPECT_EQ(device_.graphs(), 1);
  EXPECT_EQ(device_.updates(), 3);  // to 3, to 4, to 1
}

TEST_F(RecorderTest, AnotherSequenceRunsCallByCallAndIsRecordedAnew) {
  for (int i = 0; i < 3; ++i)
    Run(1);
  const int issued = device_.issued();

  ASSERT_TRUE(recorder_.Begin(0).ok());
  Add();
  Scale(1);
  Add();
  ASSERT_TRUE(recorder_.End().ok());

  EXPECT_EQ(copy_, -4);
  EXPECT_EQ(device_.issued(), issued + 3);
  for (int i = 0; i < 4; ++i)
    Run(1);
  EXPECT_EQ(copy_, -8);
  EXPECT_EQ(device_.graphs(), 2);
}

TEST_F(RecorderTest, AShorterSequenceIsNotReplayed) {
  for (int i = 0; i < 3; ++i)
    Run(1);
  const int launches = device_.launches();

  ASSERT_TRUE(recorder_.Begin(0).ok());
  Scale(1);
  ASSERT_TRUE(recorder_.End().ok());

  EXPECT_EQ(w_, -4);
  EXPECT_EQ(copy_, -3);
  EXPECT_EQ(device_.launches(), launches);
}

TEST_F(RecorderTest, AFlushStartsWhatWasHeldBack) {
  for (int run = 0; run < 3; ++run) {
    SCOPED_TRACE(run);  // the first, the recording and the replaying run
    ASSERT_TRUE(recorder_.Begin(1).ok());
    Scale(1);
    if (run == 2) {
      ASSERT_TRUE(recorder_.Flush().ok());
      EXPECT_EQ(w_, -3);
    }
    Add();
    ASSERT_TRUE(recorder_.End().ok());
    EXPECT_EQ(copy_, -run - 1);
  }
}

TEST_F(RecorderTest, ASectionThatNeverRepeatsIsNoLongerRecorded) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(recorder_.Begin(0).ok());
    Scale(1);
    ASSERT_TRUE(recorder_.Flush().ok());
    ASSERT_TRUE(recorder_.End().ok());
  }

  EXPECT_EQ(w_, -20);
  EXPECT_EQ(device_.graphs(), 0);
  EXPECT_EQ(recorder_.replays(), 0);
}

TEST_F(RecorderTest, WorkThatCannotBeRecordedRunsCallByCallFromThenOn) {
  for (const int first : {0, 1}) {
    SCOPED_TRACE(first);
    HostDevice device;
    device.set_first_unrecordable(first);
    Recorder recorder(&device);
    w_ = 0;
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(recorder.Begin(0).ok());
      ASSERT_TRUE(
          recorder.Issue(Kernel(Sgd{.rate = 1, .w = &w_, .g = &one_, .v = &v_, .count = 1})).ok());
      ASSERT_TRUE(recorder.Issue(CopyCall{.from = &w_, .to = &copy_, .bytes = 4}).ok());
      ASSERT_TRUE(recorder.End().ok());
      EXPECT_EQ(copy_, -i - 1);
    }
    EXPECT_EQ(device.issued(), 10);
    EXPECT_EQ(device.launches(), 0);
  }
}

TEST_F(RecorderTest, ARecordingThatCannotBeEndedRunsCallByCallFromThenOn) {
  device_.set_refuses_graphs(true);
  for (int i = 0; i < 5; ++i)
    Run(1);

  EXPECT_EQ(copy_, -5);
  EXPECT_EQ(device_.issued(), 10);
  EXPECT_EQ(recorder_.replays(), 0);
}

// A rank that fell silent while its work was recorded is not forgotten over what fails next.
TEST_F(RecorderTest, WhatFailsWithoutARecordingTooNamesBothReasons) {
  device_.set_first_unrecordable(0);
  const Call average = AverageCall{.values = &w_, .count = 1, .in_group = false, .is_aside = false};
  ASSERT_TRUE(recorder_.Begin(0).ok());
  Scale(1);
  ASSERT_TRUE(recorder_.End().ok());
  ASSERT_TRUE(recorder_.Begin(0).ok());

  const Fault fault = recorder_.Issue(average);

  EXPECT_FALSE(fault.ok());
  EXPECT_THAT(fault.text, ::testing::HasSubstr("while it was recorded: this cannot be recorded"));
}

TEST_F(RecorderTest, AFlushInARecordingThatCannotBeEndedStillStartsIt) {
  device_.set_refuses_graphs(true);
  Run(1);
  ASSERT_TRUE(recorder_.Begin(0).ok());
  Scale(1);
  ASSERT_TRUE(recorder_.Flush().ok());
  EXPECT_EQ(w_, -2);
  Add();
  ASSERT_TRUE(recorder_.End().ok());
  EXPECT_EQ(copy_, -2);
}

TEST_F(RecorderTest, SectionsOfDifferentKeysAreKeptApart) {
  for (int i = 0; i < 3; ++i) {
    Run(1);
    ASSERT_TRUE(recorder_.Begin(1).ok());
    Add();
    ASSERT_TRUE(recorder_.End().ok());
  }

  EXPECT_EQ(copy_, -3);
  EXPECT_EQ(recorder_.replays(), 2);
}

}  // namespace
}  // namespace assay::cuda
