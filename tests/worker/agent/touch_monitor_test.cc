#include "worker/agent/touch_monitor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/process.h"
#include "tests/support/await_writer.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/step_process.h"

namespace assay::agent {
namespace {

using testing::FakeClock;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;

// Both mechanisms must see the same things; the parameter allows fanotify or not.
class TouchMonitorTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (const char* split : {"train", "validation"}) {
      ASSERT_THAT(MakeDirectories(dir_.Path(split)), IsOk());
      ASSERT_THAT(WriteFileAtomic(dir_.Path(std::string(split) + "/a.bin"), "data"), IsOk());
    }
  }

  std::optional<TouchMonitor> Arm(bool is_read_only) {
    absl::StatusOr<TouchMonitor> monitor =
        TouchMonitor::Arm({.directories = {dir_.Path("train"), dir_.Path("validation")},
                           .is_read_only = is_read_only,
                           .is_fanotify_allowed = GetParam()},
                          &clock_);
    EXPECT_THAT(monitor, IsOk());
    if (!monitor.ok()) return std::nullopt;
    return *std::move(monitor);
  }
  // True if the kernel gives this process the mechanism that the case is about.
  bool Skips(const TouchMonitor& monitor) const {
    return GetParam() && monitor.mechanism() != "fanotify";
  }
  void Run(const std::string& script) {
    const absl::StatusOr<ProcessId> child = Spawn({.argv = {"/bin/sh", "-c", script}});
    ASSERT_THAT(child, IsOk());
    ASSERT_THAT(WaitForExit(*child, kPatience), IsOkAndHolds(0));
  }
  void MakePipes() {
    ASSERT_EQ(mkfifo(done_.c_str(), 0600), 0);
    ASSERT_EQ(mkfifo(judged_.c_str(), 0600), 0);
  }
  // Starts a shell that lives on when `script` is done, until Release: what it has touched can be
  // told to be its.
  void Hold(const std::string& script) {
    MakePipes();
    const absl::StatusOr<ProcessId> child = Spawn({.argv = {"/bin/sh", "-c", Held(script)}});
    ASSERT_THAT(child, IsOk());
    held_ = *child;
    testing::AwaitWriter(done_);
  }
  std::string Held(const std::string& script) const {
    return script + "; echo > " + done_ + "; read y < " + judged_;
  }
  void Release() {
    Run("echo > " + judged_);
    ASSERT_THAT(WaitForExit(held_, kPatience), IsOk());
    for (const std::string& pipe : {done_, judged_})
      ASSERT_THAT(RemoveTree(pipe), IsOk());
  }
  static std::optional<Touch> Take(TouchMonitor* monitor) {
    const absl::StatusOr<std::optional<Touch>> touch = monitor->Poll();
    EXPECT_THAT(touch, IsOk());
    return touch.ok() ? *touch : std::nullopt;
  }

  const TempDir dir_;
  const std::string done_ = dir_.Path("done");
  const std::string judged_ = dir_.Path("judged");
  FakeClock clock_;
  ProcessId held_;
};

#define ARM_OR_SKIP(monitor, is_read_only)                 \
  std::optional<TouchMonitor> monitor = Arm(is_read_only); \
  ASSERT_TRUE(monitor.has_value());                        \
  if (Skips(*monitor)) GTEST_SKIP() << "this process may not use fanotify"

TEST_P(TouchMonitorTest, SeesAnotherProcessReadAFile) {
  ARM_OR_SKIP(monitor, false);
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(Take(&*monitor), std::nullopt);
  clock_.Advance(absl::Seconds(3));

  Hold("read x < " + dir_.Path("train/a.bin"));

  pollfd entry{monitor->fd(), POLLIN, 0};
  ASSERT_EQ(poll(&entry, 1, 60'000), 1);
  const std::optional<Touch> touch = Take(&*monitor);
  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, dir_.Path("train/a.bin"));
  EXPECT_EQ(touch->mechanism, monitor->mechanism());
  EXPECT_EQ(touch->stamp, StampNow(clock_));
  EXPECT_EQ(touch->error_us, 3'000'001) << "since the queue was seen to be empty";
  EXPECT_EQ(touch->is_attributed, GetParam());
  EXPECT_EQ(touch->access, GetParam() ? "open" : "read");
  EXPECT_EQ(touch->pid, GetParam() ? held_.pid : 0);
  Release();
}

TEST_P(TouchMonitorTest, ReportsOnlyTheFirstTouch) {
  ARM_OR_SKIP(monitor, false);
  Hold("read x < " + dir_.Path("train/a.bin") + "; read x < " + dir_.Path("validation/a.bin"));
  EXPECT_TRUE(Take(&*monitor).has_value());
  Run("cat " + dir_.Path("validation/a.bin") + " > /dev/null");
  EXPECT_EQ(Take(&*monitor), std::nullopt);
  EXPECT_EQ(monitor->fd(), -1);
  Release();
}

// An agent that resets the caches opens all files and reads none.
TEST_P(TouchMonitorTest, WhereNobodyIsNamedOpeningIsNoTouch) {
  if (GetParam()) GTEST_SKIP() << "fanotify names the process";
  ARM_OR_SKIP(monitor, false);
  Run(": < " + dir_.Path("train/a.bin"));
  EXPECT_EQ(Take(&*monitor), std::nullopt);
}

TEST_P(TouchMonitorTest, AProcessThatHasEndedAccusesNobody) {
  if (!GetParam()) GTEST_SKIP() << "inotify does not name the process";
  ARM_OR_SKIP(monitor, false);
  Run("exec cat " + dir_.Path("train/a.bin") + " > /dev/null");

  const std::optional<Touch> ended = Take(&*monitor);
  ASSERT_TRUE(ended.has_value());
  EXPECT_FALSE(ended->is_attributed);
  Run("exec cat " + dir_.Path("train/a.bin") + " > /dev/null");
  EXPECT_EQ(Take(&*monitor), std::nullopt) << "one of a kind is enough";

  Hold("read x < " + dir_.Path("train/a.bin"));
  const std::optional<Touch> own = Take(&*monitor);
  ASSERT_TRUE(own.has_value());
  EXPECT_TRUE(own->is_attributed);
  EXPECT_EQ(monitor->fd(), -1);
  Release();
}

TEST_P(TouchMonitorTest, AStrangerAccusesNobody) {
  if (!GetParam()) GTEST_SKIP() << "inotify does not name the process";
  ARM_OR_SKIP(monitor, false);
  MakePipes();
  Run("(" + Held("read x < " + dir_.Path("train/a.bin")) + ") &");  // its parent ends: an orphan
  testing::AwaitWriter(done_);

  const std::optional<Touch> touch = Take(&*monitor);

  ASSERT_TRUE(touch.has_value());
  EXPECT_FALSE(touch->is_attributed);
  EXPECT_EQ(touch->process, "sh");
  Run("echo > " + judged_);
}

TEST_P(TouchMonitorTest, ListingAndWritingAreNoTouchOfAStagedCopy) {
  ARM_OR_SKIP(monitor, true);
  Run("ls -l " + dir_.Path("train") + " > /dev/null; echo new > " + dir_.Path("train/b.bin"));
  EXPECT_EQ(Take(&*monitor), std::nullopt);

  Run("cat " + dir_.Path("train/b.bin") + " > /dev/null");

  const std::optional<Touch> touch = Take(&*monitor);
  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, dir_.Path("train/b.bin"));
  EXPECT_EQ(touch->access, "read");
}

TEST_P(TouchMonitorTest, WatchesFoldersWithinFolders) {
  ASSERT_THAT(MakeDirectories(dir_.Path("train/x/y")), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir_.Path("train/x/y/c.bin"), "data"), IsOk());
  ARM_OR_SKIP(monitor, false);
  Run("cat " + dir_.Path("train/x/y/c.bin") + " > /dev/null");
  const std::optional<Touch> touch = Take(&*monitor);
  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, dir_.Path("train/x/y/c.bin"));
}

TEST_P(TouchMonitorTest, FilesBesideTheWatchedFoldersDoNotCount) {
  ASSERT_THAT(WriteFileAtomic(dir_.Path("manifest.json"), "{}"), IsOk());
  ARM_OR_SKIP(monitor, false);
  Run("cat " + dir_.Path("manifest.json") + " > /dev/null");
  EXPECT_EQ(Take(&*monitor), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, TouchMonitorTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& test) {
                           return test.param ? "Fanotify" : "Inotify";
                         });

// Two runs of one node may read the same dataset: each witnesses its own touch only. The other run
// does not descend from this process and lives until its touch was judged.
TEST_P(TouchMonitorTest, AnotherRunOnTheNodeIsNotThisRun) {
  if (!GetParam()) GTEST_SKIP() << "inotify does not name the process";
  ARM_OR_SKIP(monitor, false);
  MakePipes();
  RunFixture other;
  other.spec.mutable_dataset()->set_path(dir_.path());
  other.Trainer(Held("read x < " + dir_.Path("train/a.bin")));
  const RunDirectory directory = *RunDirectory::ForRun(other.worker.data_directory(), other.key);
  ASSERT_THAT(PrepareRun(directory, other.spec, other.worker, "{}"), IsOk());
  Run("setsid " STEP_RUNNER " step " + directory.path() + " &");
  testing::AwaitWriter(done_);

  EXPECT_EQ(Take(&*monitor), std::nullopt);

  Run("echo > " + judged_);
  while (!FileExists(directory.ExitPath())) {
  }
}

// Whoever says that he is the step of a run, and is none, is somebody like all others: with a
// directory of his own making, or with that of a run whose lock another process holds.
TEST_P(TouchMonitorTest, AProgramThatSaysItIsAStepIsSomebody) {
  if (!GetParam()) GTEST_SKIP() << "inotify does not name the process";
  RunFixture other;
  const RunDirectory directory = *RunDirectory::ForRun(other.worker.data_directory(), other.key);
  ASSERT_THAT(MakeDirectories(directory.path()), IsOk());
  const UniqueFd lock(open(directory.LockPath().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  ARM_OR_SKIP(monitor, false);
  MakePipes();
  Run("setsid " + std::filesystem::canonical("/bin/sh").string() + " -c '" +
      Held("read x < " + dir_.Path("train/a.bin")) + "' step " + directory.path() + " &");
  testing::AwaitWriter(done_);

  const std::optional<Touch> touch = Take(&*monitor);

  ASSERT_TRUE(touch.has_value());
  EXPECT_FALSE(touch->is_attributed);
  EXPECT_EQ(touch->path, dir_.Path("train/a.bin"));
  Run("echo > " + judged_);
}

// A trainer that starts the step's own program is not another run by that.
TEST_P(TouchMonitorTest, AStepThatTheRunItselfStartedIsOfTheRun) {
  if (!GetParam()) GTEST_SKIP() << "inotify does not name the process";
  ARM_OR_SKIP(monitor, false);
  MakePipes();
  RunFixture fake;
  fake.spec.mutable_dataset()->set_path(dir_.path());
  fake.Trainer(Held("read x < " + dir_.Path("train/a.bin")));
  const RunDirectory directory = *RunDirectory::ForRun(fake.worker.data_directory(), fake.key);
  ASSERT_THAT(PrepareRun(directory, fake.spec, fake.worker, "{}"), IsOk());
  const absl::StatusOr<ProcessId> step = StartStepProcess(directory, STEP_RUNNER);
  ASSERT_THAT(step, IsOk());
  testing::AwaitWriter(done_);

  const std::optional<Touch> touch = Take(&*monitor);

  ASSERT_TRUE(touch.has_value());
  EXPECT_TRUE(touch->is_attributed);
  Run("echo > " + judged_);
  EXPECT_THAT(WaitForExit(*step, kPatience), IsOk());
}

TEST(TouchMonitorArmTest, AMissingFolderIsNamed) {
  const FakeClock clock;
  EXPECT_THAT(TouchMonitor::Arm({.directories = {"/no/such/dataset/train"}}, &clock),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/dataset/train")));
}

}  // namespace
}  // namespace assay::agent
