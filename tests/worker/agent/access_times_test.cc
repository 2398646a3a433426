#include "worker/agent/access_times.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/touch_monitor.h"

namespace assay::agent {
namespace {

using ::testing::Contains;
using testing::IsOk;
using testing::IsOkAndHolds;
using ::testing::Not;
using testing::TempDir;

// Each look at it takes `step`.
class SteppingClock final : public Clock {
 public:
  explicit SteppingClock(absl::Duration step) : step_(step) {}
  absl::Time Wall() const override { return absl::Now(); }
  MonoTime Mono() const override { return mono_ = mono_ + step_; }

 private:
  const absl::Duration step_;
  mutable MonoTime mono_;
};

class AccessTimesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"train", "elsewhere"})
      ASSERT_THAT(MakeDirectories(dir_.Path(folder)), IsOk());
    for (const std::string& file : {a_, b_})
      ASSERT_THAT(WriteFileAtomic(file, "data"), IsOk());
    ASSERT_EQ(link(a_.c_str(), link_.c_str()), 0);
    if (Take()->file_count() != 2) GTEST_SKIP() << "this file system notes no times of access";
  }

  absl::StatusOr<AccessTimes> Take() { return AccessTimes::Take({dir_.Path("train")}, 1, clock_); }
  // As if somebody had read it then.
  static void SetAccessed(const std::string& path, absl::Time when) {
    const timespec times[] = {absl::ToTimespec(when), {0, UTIME_OMIT}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  static void Run(const std::string& script) {
    const absl::StatusOr<ProcessId> child = Spawn({.argv = {"/bin/sh", "-c", script}});
    ASSERT_THAT(child, IsOk());
    ASSERT_THAT(WaitForExit(*child, kPatience), IsOkAndHolds(0));
  }

  const TempDir dir_;
  const std::string a_ = dir_.Path("train/a.bin");
  const std::string b_ = dir_.Path("train/b.bin");
  const std::string link_ = dir_.Path("elsewhere/link");
  const SteppingClock clock_{absl::ZeroDuration()};  // no budget ends
};

TEST_F(AccessTimesTest, AReadUnderAnotherNameMovesThem) {
  const absl::StatusOr<AccessTimes> times = Take();
  ASSERT_THAT(times, IsOk());
  const int64_t later_us = absl::ToUnixMicros(clock_.Wall() + absl::Seconds(1));
  EXPECT_EQ(times->ReadBefore(b_, later_us, clock_), (AccessTimes::Count{0, 2}));
  Run("cat " + link_ + " > /dev/null");
  EXPECT_EQ(times->ReadBefore(b_, later_us, clock_), (AccessTimes::Count{1, 2}));
  EXPECT_EQ(times->ReadBefore(a_, later_us, clock_).read, 0U) << "that is the touch itself";
}

TEST_F(AccessTimesTest, WhatWasReadAfterTheTouchDoesNotCountHoweverLateThatIsHeardOf) {
  const absl::StatusOr<AccessTimes> times = Take();
  ASSERT_THAT(times, IsOk());
  const absl::Time touched = clock_.Wall() + absl::Seconds(1);
  SetAccessed(b_, touched);
  SetAccessed(a_, touched + absl::Seconds(1));
  EXPECT_EQ(times->ReadBefore(b_, absl::ToUnixMicros(touched + absl::Seconds(10)), clock_).read,
            0U);
  SetAccessed(a_, touched - absl::Seconds(1));
  EXPECT_EQ(times->ReadBefore(b_, absl::ToUnixMicros(touched + absl::Seconds(10)), clock_).read,
            1U);
}

TEST_F(AccessTimesTest, ASlowFileSystemIsNotWaitedFor) {
  const absl::StatusOr<AccessTimes> times = Take();
  ASSERT_THAT(times, IsOk());
  const SteppingClock slow(AccessTimes::kReadBudget * 2 / 3);
  EXPECT_EQ(times->ReadBefore(dir_.Path("train/c.bin"), 0, slow).looked_at, 1U);
}

TEST_F(AccessTimesTest, FilesThatWouldNotTellAreNotAsked) {
  SetAccessed(a_, clock_.Wall() + absl::Seconds(10));
  if (Take()->file_count() == 2) GTEST_SKIP() << "this mount notes each read";
  EXPECT_EQ(Take()->file_count(), 1U);
  SetAccessed(a_, clock_.Wall() - absl::Hours(25));
  EXPECT_EQ(Take()->file_count(), 2U) << "once a day it is noted";
}

// On an ordinary account, whose watch of folders sees no other names.
TEST_F(AccessTimesTest, TheFirstTouchSaysThatFilesHadBeenReadBefore) {
  absl::StatusOr<TouchMonitor> monitor = TouchMonitor::Arm(
      {.directories = {dir_.Path("train")}, .is_fanotify_allowed = false}, &clock_);
  ASSERT_THAT(monitor, IsOk());
  Run("cat " + link_ + " > /dev/null");
  SetAccessed(link_, clock_.Wall() - absl::Seconds(1));
  EXPECT_THAT(monitor->Poll(), IsOkAndHolds(std::nullopt)) << "nothing is seen of it";

  Run("cat " + b_ + " > /dev/null");

  const absl::StatusOr<std::optional<Touch>> touch = monitor->Poll();
  ASSERT_THAT(touch, IsOk());
  ASSERT_TRUE(touch->has_value());
  EXPECT_THAT((*touch)->holes,
              Contains(WitnessHole{"W-READ-BEFORE",
                                   "1 of 2 files whose times of access tell had been read before "
                                   "by a way that was not seen, such as another name"}));
}

TEST_F(AccessTimesTest, AnHonestFirstTouchSaysNothingOfTheKind) {
  absl::StatusOr<TouchMonitor> monitor = TouchMonitor::Arm(
      {.directories = {dir_.Path("train")}, .is_fanotify_allowed = false}, &clock_);
  ASSERT_THAT(monitor, IsOk());

  Run("cat " + b_ + " " + a_ + " > /dev/null");

  const absl::StatusOr<std::optional<Touch>> touch = monitor->Poll();
  ASSERT_THAT(touch, IsOk());
  ASSERT_TRUE(touch->has_value());
  std::vector<std::string> codes;
  for (const WitnessHole& hole : (*touch)->holes)
    codes.push_back(hole.code);
  EXPECT_THAT(codes, Not(Contains("W-READ-BEFORE")));
}

}  // namespace
}  // namespace assay::agent
