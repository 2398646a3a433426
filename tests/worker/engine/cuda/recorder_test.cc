#include "worker/engine/backends/cuda/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/engine/cuda/host_device.h"

namespace assay::cuda {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

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

TEST_F(RecorderTest, CallByCallNothingIsRecorded) {
  HostDevice device;
  Recorder recorder(&device, {.is_call_by_call = true});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(recorder.Begin(0).ok());
    ASSERT_TRUE(recorder.Issue(CopyCall{.from = &w_, .to = &copy_, .bytes = 4}).ok());
    EXPECT_EQ(device.issued(), i + 1);  // at once
    ASSERT_TRUE(recorder.End().ok());
  }

  EXPECT_EQ(device.graphs(), 0);
}

TEST_F(RecorderTest, AFaultNamesItsCallAlsoWhenARecordingIsMadeUpFor) {
  device_.set_first_unrecordable(1);
  Run(1);
  device_.set_fails_at(0);
  ASSERT_TRUE(recorder_.Begin(0).ok());
  Scale(1);

  const Fault fault = recorder_.Issue(CopyCall{.from = &w_, .to = &copy_, .bytes = 4});

  EXPECT_THAT(fault.text, HasSubstr("told to fail; in kernel Sgd count=1"));
}

TEST_F(RecorderTest, ATraceHasALineForEachCallWithItsSectionAndRun) {
  const testing::TempDir dir;
  absl::StatusOr<std::unique_ptr<CallTrace>> trace = CallTrace::Open(dir.Path("trace"));
  ASSERT_THAT(trace, testing::IsOk());
  HostDevice device;
  Recorder recorder(&device, {.trace = trace->get()});
  const CopyCall copy = {.from = &w_, .to = &copy_, .bytes = 4};
  ASSERT_TRUE(recorder.Issue(copy).ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(recorder.Begin(7).ok());
    ASSERT_TRUE(recorder.Issue(copy).ok());
    ASSERT_TRUE(recorder.End().ok());
  }

  const std::vector<std::string> lines =
      absl::StrSplit(ReadFile(dir.Path("trace")).value_or(""), '\n', absl::SkipEmpty());
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines[1], StartsWith("-1\t0\t"));
  EXPECT_THAT(lines[2], StartsWith("7\t0\t"));
  EXPECT_THAT(lines[3], AllOf(StartsWith("7\t1\t"), EndsWith("\tcopy bytes=4")));
  EXPECT_EQ(device.issued(), 3);
}

TEST(CallTraceTest, AFileThatCannotBeWrittenIsNamed) {
  EXPECT_THAT(CallTrace::Open("/no/such/folder/trace").status(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("/no/such/folder/trace: No such file")));
}

}  // namespace
}  // namespace assay::cuda
