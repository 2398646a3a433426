#include "worker/agent/rank_watch.h"

#include <poll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/step_fixture.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;

// Processes whose files the test writes.
class RankWatchTest : public ::testing::Test {
 protected:
  void Put(const std::string& path, absl::string_view text) {
    const std::filesystem::path file = dir_.Path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void PutProcess(int pid, int tracer, absl::string_view groups = "0::/\n") {
    Put(absl::StrCat("proc/", pid, "/status"),
        absl::StrCat("Name:\ttrain\nState:\tR\nTracerPid:\t", tracer, "\nUid:\t0\n"));
    Put(absl::StrCat("proc/", pid, "/cgroup"), groups);
  }
  void PutStart(int pid, int64_t start_ticks) {
    Put(absl::StrCat("proc/", pid, "/stat"),
        absl::StrCat(pid, " (a) name) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 ", start_ticks,
                     " 0 0\n"));
  }
  // So many seconds after the run began.
  bool LookAt(double seconds, const std::vector<std::pair<int, pid_t>>& ranks) {
    return watch_.Look(ranks,
                       {.wall_us = 1'704'067'200'000'000 + static_cast<int64_t>(seconds * 1e6),
                        .mono_ns = 5 + static_cast<int64_t>(seconds * 1e9)});
  }

  testing::TempDir dir_;
  RankWatch watch_{dir_.Path("proc"), dir_.Path("cgroups")};
};

TEST_F(RankWatchTest, WhoTracesARankIsNamed) {
  PutProcess(7, 0);
  PutProcess(8, 0);
  EXPECT_FALSE(LookAt(0, {{0, 7}, {1, 8}}));
  PutProcess(8, 99);
  Put("proc/99/comm", "gdb\n");
  EXPECT_FALSE(LookAt(1, {{0, 7}, {1, 8}}));
  EXPECT_FALSE(LookAt(2, {{0, 7}, {1, 8}}));
  PutProcess(8, 0);
  EXPECT_TRUE(LookAt(4, {{0, 7}, {1, 8}}));
  EXPECT_THAT(watch_.faults(),
              ElementsAre(NodeFault{
                  "R-PAU-003", "rank 1 was traced by gdb (pid 99) for about 3 s from 00:00:01Z"}));
}

TEST_F(RankWatchTest, AFrozenGroupOfEitherVersionIsSeen) {
  Put("cgroups/freezer/job/freezer.state", "FROZEN\n");
  Put("cgroups/job/cgroup.events", "populated 1\nfrozen 1\n");
  PutProcess(7, 0, "6:freezer:/job\n0::/elsewhere\n");
  PutProcess(8, 0, "0::/job\n");
  PutProcess(9, 0, "6:freezer:/\n0::/\n");
  LookAt(0, {{0, 7}, {1, 8}, {2, 9}});
  Put("cgroups/freezer/job/freezer.state", "THAWED\n");
  Put("cgroups/job/cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_TRUE(LookAt(2, {{0, 7}, {1, 8}, {2, 9}}));
  EXPECT_THAT(
      watch_.faults(),
      ElementsAre(
          NodeFault{"R-PAU-004",
                    "rank 0 was frozen with its control group for about 2 s from 00:00:00Z"},
          NodeFault{"R-PAU-004",
                    "rank 1 was frozen with its control group for about 2 s from 00:00:00Z"}));
}

TEST_F(RankWatchTest, WhatGoesOnUntilTheEndIsTold) {
  PutProcess(7, 99);
  LookAt(0, {{0, 7}});
  EXPECT_TRUE(LookAt(0.5, {})) << "no rank is left";
  EXPECT_THAT(watch_.faults(), SizeIs(1));
}

TEST_F(RankWatchTest, LooksOnceASecond) {
  PutProcess(7, 0);
  LookAt(0, {{0, 7}});
  PutProcess(7, 99);
  LookAt(0.9, {{0, 7}});
  PutProcess(7, 0);
  LookAt(1.9, {{0, 7}});
  EXPECT_FALSE(LookAt(2.9, {{0, 7}}));
  EXPECT_THAT(watch_.faults(), IsEmpty());
}

TEST_F(RankWatchTest, ProcessesThatAreGoneOrHiddenAccuseNobody) {
  LookAt(0, {{0, 7}});
  Put("proc/8/status", "no sense\nTracerPid: x\n");
  Put("proc/8/cgroup", "::\n6:freezer\n\n");
  LookAt(1, {{0, 8}});
  EXPECT_FALSE(LookAt(2, {}));
}

TEST_F(RankWatchTest, ARankThatIsAnotherProcessIsNoticed) {
  PutStart(7, 100);
  PutStart(8, 101);
  LookAt(0, {{0, 7}, {1, 8}});
  LookAt(1, {{0, 7}, {1, 8}});
  EXPECT_EQ(watch_.replaced(), std::nullopt);
  PutStart(8, 5000);
  LookAt(2, {{0, 7}, {1, 8}});
  ASSERT_TRUE(watch_.replaced().has_value());
  EXPECT_THAT(*watch_.replaced(),
              HasSubstr("rank 1 (pid 8) is not the process that was started any more: that began "
                        "101 clock ticks after the node's boot, and this one 5000;"));
  PutStart(8, 101);
  LookAt(3, {{0, 7}, {1, 8}});
  EXPECT_TRUE(watch_.replaced().has_value()) << "what was is not undone";
}

TEST_F(RankWatchTest, AnotherBootIsNoticed) {
  Put("proc/sys/kernel/random/boot_id", "one\n");
  LookAt(0, {{0, 7}});
  Put("proc/sys/kernel/random/boot_id", "");
  LookAt(1, {{0, 7}});
  EXPECT_EQ(watch_.replaced(), std::nullopt) << "nobody can tell";
  Put("proc/sys/kernel/random/boot_id", "two\n");
  LookAt(2, {{0, 7}});
  ASSERT_TRUE(watch_.replaced().has_value());
  EXPECT_THAT(*watch_.replaced(), HasSubstr("boot was one when the run began and is two now"));
}

TEST_F(RankWatchTest, ARankThatEndsIsNoOther) {
  PutStart(7, 100);
  LookAt(0, {{0, 7}});
  Put("proc/7/stat", "");
  LookAt(1, {{0, 7}});
  std::filesystem::remove(dir_.Path("proc/7/stat"));
  LookAt(2, {{0, 7}});
  LookAt(3, {});
  EXPECT_EQ(watch_.replaced(), std::nullopt);
}

class WatchedRanksTest : public StepFixture {
 protected:
  // A run whose rank waits for the test; returns the rank's process.
  pid_t StartRank() {
    const std::string begun = run_.dir.Path("begun");
    run_.Trainer("echo $$ > " + begun + ".new; mv " + begun + ".new " + begun + "; until [ -e " +
                 run_.dir.Path("go") + " ]; do sleep 0.01; done");
    step_ = Start();
    EXPECT_TRUE(testing::Await([&] { return FileExists(begun); }));
    return std::stoi(ReadFile(begun).value_or("0"));
  }
  static void Wait(absl::Duration duration) {  // is what is to be seen
    const RealClock clock;
    for (const MonoTime end = clock.Mono() + duration; clock.Mono() < end;)
      poll(nullptr, 0, 50);
  }
  std::vector<NodeFault> FaultsOfTheRest() {
    EXPECT_THAT(WriteFileAtomic(run_.dir.Path("go"), ""), IsOk());
    EXPECT_EQ(Finish(step_).code, 0);
    return directory_.ReadFaults(directory_.RanksWatchedPath()).value_or(std::vector<NodeFault>());
  }
  ProcessId step_;
};

TEST_F(WatchedRanksTest, ATracerIsFound) {
  const pid_t rank = StartRank();
  if (ptrace(PTRACE_SEIZE, rank, nullptr, nullptr) != 0) {
    FaultsOfTheRest();
    GTEST_SKIP() << "this account may not trace";
  }
  Wait(absl::Milliseconds(2500));
  EXPECT_EQ(ptrace(PTRACE_INTERRUPT, rank, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(rank, nullptr, __WALL), rank);
  EXPECT_EQ(ptrace(PTRACE_DETACH, rank, nullptr, nullptr), 0);
  EXPECT_THAT(
      FaultsOfTheRest(),
      Contains(AllOf(Field(&NodeFault::rule, "R-PAU-003"),
                     Field(&NodeFault::found, HasSubstr(absl::StrCat("(pid ", getpid(), ")"))))));
}

TEST_F(WatchedRanksTest, AFreezerIsFound) {
  const std::string group = absl::StrCat("/sys/fs/cgroup/freezer/assay_test_", getpid());
  const pid_t rank = StartRank();
  std::error_code error;
  const auto put = [&group](const char* file, const std::string& text) {
    std::ofstream out(absl::StrCat(group, "/", file));
    out << text;
    return static_cast<bool>(out.flush());
  };
  if (!std::filesystem::create_directory(group, error) ||
      !put("cgroup.procs", absl::StrCat(rank))) {
    FaultsOfTheRest();
    GTEST_SKIP() << "there is no freezer of version 1 here";
  }
  EXPECT_TRUE(put("freezer.state", "FROZEN"));
  Wait(absl::Milliseconds(2500));
  EXPECT_TRUE(put("freezer.state", "THAWED"));
  EXPECT_THAT(FaultsOfTheRest(), Contains(Field(&NodeFault::rule, "R-PAU-004")));
  std::filesystem::remove(group, error);
}

}  // namespace
}  // namespace assay::agent
