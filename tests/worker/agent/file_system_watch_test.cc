// What marks on the dataset's folders miss and one on its file system sees: the same files under
// other names (W3 of the witness's specification).

#include "worker/agent/file_system_watch.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/process.h"
#include "tests/support/await_writer.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/touch_monitor.h"

namespace assay::agent {
namespace {

using testing::FakeClock;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::TempDir;

constexpr uid_t kNobody = 65534;

class FileSystemWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"train", "elsewhere"})
      ASSERT_THAT(MakeDirectories(dir_.Path(folder)), IsOk());
    ASSERT_THAT(WriteFileAtomic(file_, "data"), IsOk());
    for (const std::string& pipe : {done_, judged_})
      ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  }

  absl::StatusOr<TouchMonitor> Arm() {
    return TouchMonitor::Arm({.directories = {dir_.Path("train")}}, &clock_);
  }
  void Run(const std::string& script) {
    const absl::StatusOr<ProcessId> child = Spawn({.argv = {"/bin/sh", "-c", script}});
    ASSERT_THAT(child, IsOk());
    ASSERT_THAT(WaitForExit(*child, kPatience), IsOkAndHolds(0));
  }
  // What the monitor says of a process that lives until it was judged.
  std::optional<Touch> TouchOf(TouchMonitor* monitor, const std::string& script) {
    const absl::StatusOr<ProcessId> child =
        Spawn({.argv = {"/bin/sh", "-c", script + "; echo > " + done_ + "; read y < " + judged_}});
    EXPECT_THAT(child, IsOk());
    testing::AwaitWriter(done_);
    const absl::StatusOr<std::optional<Touch>> touch = monitor->Poll();
    EXPECT_THAT(touch, IsOk());
    Run("echo > " + judged_);
    EXPECT_THAT(WaitForExit(*child, kPatience), IsOk());
    return touch.ok() ? *touch : std::nullopt;
  }

  const TempDir dir_;
  const std::string file_ = dir_.Path("train/a.bin");
  const std::string done_ = dir_.Path("done");
  const std::string judged_ = dir_.Path("judged");
  FakeClock clock_;
};

#define ARM_OR_SKIP(monitor)                    \
  absl::StatusOr<TouchMonitor> monitor = Arm(); \
  ASSERT_THAT(monitor, IsOk());                 \
  if (monitor->watched() != "file system")      \
  GTEST_SKIP() << "this process may not watch a file system, or that of temporary files refuses"

TEST_F(FileSystemWatchTest, AHardLinkFromBeforeTheRunIsTheFileItself) {
  ASSERT_EQ(link(file_.c_str(), dir_.Path("elsewhere/x").c_str()), 0);
  ARM_OR_SKIP(monitor);

  const std::optional<Touch> touch = TouchOf(&*monitor, "read x < " + dir_.Path("elsewhere/x"));

  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, file_);
  EXPECT_EQ(touch->mechanism, "fanotify");
  EXPECT_TRUE(touch->is_attributed);
  EXPECT_EQ(monitor->fd(), -1) << "nothing is watched any more";
}

TEST_F(FileSystemWatchTest, AFileThatIsMovedAwayIsStillOfTheDataset) {
  ARM_OR_SKIP(monitor);
  const std::string moved = dir_.Path("elsewhere/moved");

  const std::optional<Touch> touch =
      TouchOf(&*monitor, "mv " + file_ + " " + moved + "; read x < " + moved);

  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, file_);
}

TEST_F(FileSystemWatchTest, ABindMountInItsOwnNamespaceHidesNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may mount";
  ARM_OR_SKIP(monitor);
  const std::string elsewhere = dir_.Path("elsewhere");

  const std::string inside = "mount --bind " + dir_.Path("train") + " " + elsewhere +
                             " && read x < " + elsewhere + "/a.bin; echo > " + done_ +
                             "; read y < " + judged_;
  const std::optional<Touch> touch = TouchOf(
      &*monitor, "if unshare --mount true; then exec unshare --mount sh -c '" + inside + "'; fi");

  if (!touch.has_value()) GTEST_SKIP() << "no mounts can be made here";
  EXPECT_EQ(touch->path, file_);
  EXPECT_TRUE(touch->is_attributed);
}

// Any account may mount one, in namespaces of its own. Linux 6.1 hid what is read below it.
TEST_F(FileSystemWatchTest, AnOverlayInAUserNamespaceHidesNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may watch a file system";
  for (const char* folder : {"upper", "work", "merged"}) {
    ASSERT_THAT(MakeDirectories(dir_.Path(folder)), IsOk());
    ASSERT_EQ(chown(dir_.Path(folder).c_str(), kNobody, kNobody), 0);
  }
  for (const std::string& pipe : {done_, judged_})
    ASSERT_EQ(chmod(pipe.c_str(), 0666), 0);
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  const std::string as_nobody =
      "setpriv --reuid=65534 --regid=65534 --clear-groups unshare --user "
      "--map-root-user --mount ";
  const std::string mount = "mount -t overlay overlay -o lowerdir=" + dir_.Path("train") +
                            ",upperdir=" + dir_.Path("upper") + ",workdir=" + dir_.Path("work") +
                            " " + dir_.Path("merged");
  const absl::StatusOr<ProcessId> tried = Spawn({.argv = {"/bin/sh", "-c", as_nobody + mount}});
  ASSERT_THAT(tried, IsOk());
  if (WaitForExit(*tried, kPatience).value_or(1) != 0)
    GTEST_SKIP() << "an ordinary account may mount no overlay here";
  ARM_OR_SKIP(monitor);

  const std::optional<Touch> touch =
      TouchOf(&*monitor, "exec " + as_nobody + "sh -c '" + mount + " && read x < " +
                             dir_.Path("merged/a.bin") + "; echo > " + done_ + "; read y < " +
                             judged_ + "'");

  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, file_);
  EXPECT_TRUE(touch->is_attributed);
}

// Who reads the dataset is the view's server then; the run has started it.
TEST_F(FileSystemWatchTest, AViewByFuseHidesNothing) {
  const char* const programs = std::getenv("ASSAY_BIN_DIR");
  const std::string view = JoinPath(programs == nullptr ? "build/dev/bin" : programs, "slow_fs");
  if (geteuid() != 0 || !FileExists(view) || !FileExists("/dev/fuse"))
    GTEST_SKIP() << "no view can be mounted here";
  ASSERT_THAT(MakeDirectories(dir_.Path("view")), IsOk());
  ARM_OR_SKIP(monitor);

  const std::optional<Touch> touch = TouchOf(
      &*monitor, "trap 'kill $!; wait' EXIT; " + view + " " + dir_.Path("train") + " " +
                     dir_.Path("view") + " 0 & until [ -e " + dir_.Path("view/a.bin") +
                     " ]; do kill -0 $! || break; done; read x < " + dir_.Path("view/a.bin"));

  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, file_);
  EXPECT_TRUE(touch->is_attributed);
}

TEST_F(FileSystemWatchTest, WhereALinkOfTheDatasetLeadsIsWatched) {
  const std::string target = dir_.Path("elsewhere/target");
  ASSERT_THAT(WriteFileAtomic(target, "data"), IsOk());
  ASSERT_EQ(symlink(target.c_str(), dir_.Path("train/link.bin").c_str()), 0);
  ARM_OR_SKIP(monitor);

  const std::optional<Touch> touch = TouchOf(&*monitor, "read x < " + target);

  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, dir_.Path("train/link.bin"));
}

TEST_F(FileSystemWatchTest, WhatComesLaterIsKnownByItsFolder) {
  ARM_OR_SKIP(monitor);
  const std::optional<Touch> touch =
      TouchOf(&*monitor, "echo new > " + dir_.Path("train/later.bin"));
  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(touch->path, dir_.Path("train/later.bin"));
}

// An inode's number comes back when its file is gone.
TEST_F(FileSystemWatchTest, AnotherFileWithTheNumberOfOneThatIsGoneIsAnother) {
  ARM_OR_SKIP(monitor);
  struct stat before {};
  ASSERT_EQ(stat(file_.c_str(), &before), 0);
  ASSERT_EQ(unlink(file_.c_str()), 0);

  const std::string other = dir_.Path("elsewhere/other");
  const std::optional<Touch> touch =
      TouchOf(&*monitor, "echo y > " + other + "; read x < " + other);

  EXPECT_EQ(touch, std::nullopt);
}

// Overlay gives no handles for its events.
TEST_F(FileSystemWatchTest, WhereAFileSystemRefusesItsFoldersAreWatchedAndThatIsSaid) {
  constexpr int kNoMount = 77;
  if (geteuid() != 0) GTEST_SKIP() << "only root may mount";
  for (const char* folder : {"upper", "work", "merged"})
    ASSERT_THAT(MakeDirectories(dir_.Path(folder)), IsOk());
  const std::string mount =
      "mount --make-rprivate / && mount -t overlay overlay -o lowerdir=" + dir_.Path("train") +
      ",upperdir=" + dir_.Path("upper") + ",workdir=" + dir_.Path("work") + " " +
      dir_.Path("merged");
  const pid_t child = fork();  // a mount of its own
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 || system(mount.c_str()) != 0) _exit(kNoMount);
    absl::StatusOr<TouchMonitor> monitor =
        TouchMonitor::Arm({.directories = {dir_.Path("merged")}}, &clock_);
    if (!monitor.ok() || monitor->watched() != "folders") _exit(1);
    const std::optional<Touch> touch = TouchOf(&*monitor, "read x < " + dir_.Path("merged/a.bin"));
    const bool is_said = touch.has_value() && touch->is_attributed && touch->holes.size() > 1 &&
                         touch->holes[1].code == "W-NO-FS-MARK";
    _exit(is_said ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoMount) GTEST_SKIP() << "no overlay can be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(FileSystemWatchTest, HowManyFilesAreIdentifiedInTime) {
  for (int i = 0; i < 10; ++i)
    ASSERT_THAT(WriteFileAtomic(dir_.Path("train/" + std::to_string(i)), ""), IsOk());
  const absl::StatusOr<FileSystemWatch> all =
      FileSystemWatch::Open({dir_.Path("train")}, false, clock_);
  if (absl::IsUnavailable(all.status())) GTEST_SKIP() << all.status();
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(all->file_count(), 11U);
  EXPECT_EQ(all->incomplete(), "");

  // A file system that takes as long as the budget for a file.
  class SlowClock : public Clock {
   public:
    absl::Time Wall() const override { return absl::UnixEpoch(); }
    MonoTime Mono() const override {
      return MonoTime{++calls_ * absl::ToInt64Nanoseconds(FileSystemWatch::kBudget) / 4};
    }

   private:
    mutable int64_t calls_ = 0;
  } slow;
  const absl::StatusOr<FileSystemWatch> some =
      FileSystemWatch::Open({dir_.Path("train")}, false, slow);
  ASSERT_THAT(some, IsOk());
  EXPECT_LT(some->file_count(), 11U);
  EXPECT_THAT(some->incomplete(), HasSubstr("only 4 files were identified in 30s"));
}

}  // namespace
}  // namespace assay::agent
