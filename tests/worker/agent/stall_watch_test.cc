#include "worker/agent/stall_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "tests/support/await.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/step_fixture.h"

namespace assay::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A node whose files the test writes: ranks 7 and 8.
class StallWatchTest : public ::testing::Test {
 protected:
  StallWatchTest() {
    PutTicks(7, 500);
    PutTicks(8, 500);
    Put("proc/net/dev",
        "Inter-| Receive\n  lo: 99 0 0 0 0 0 0 0 99 0\neth0: 5 0 0 0 0 0 0 0 5 0\n");
    Put("proc/diskstats", "254 0 vda 1 0 10 0 1 0 10 0 0 0 0\n");
  }
  void Put(const std::string& path, absl::string_view text) {
    const std::filesystem::path file = dir_.Path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void PutTicks(int pid, int64_t ticks) {
    Put(absl::StrCat("proc/", pid, "/stat"),
        absl::StrCat(pid, " (a) b) S 1 1 1 0 -1 0 0 0 0 0 ", ticks - 1, " 1 0 0 20 0 1 0 3 0\n"));
  }
  bool LookAt(double seconds) { return Look(seconds, {{0, 7}, {1, 8}}); }
  bool Look(double seconds, const std::vector<std::pair<int, pid_t>>& ranks) {
    return watch_.Look(ranks,
                       {.wall_us = 1'704'067'200'000'000 + static_cast<int64_t>(seconds * 1e6),
                        .mono_ns = 5 + static_cast<int64_t>(seconds * 1e9)});
  }
  // As from the look at `begin` on, a second after the one before, nothing goes on.
  void LookFrom(int begin, int end) {
    for (int second = begin; second <= end; ++second)
      EXPECT_FALSE(LookAt(second)) << second;
  }

  testing::TempDir dir_;
  std::map<pid_t, std::vector<pid_t>> below_;
  StallWatch watch_{{.proc = dir_.Path("proc"),
                     .sys = dir_.Path("sys"),
                     .dev = dir_.Path("dev"),
                     .descendants = [this](pid_t pid) { return below_[pid]; }}};
};

TEST_F(StallWatchTest, RanksThatWaitForNothingThatMovesAreTold) {
  LookFrom(0, 6);
  EXPECT_THAT(watch_.faults(), IsEmpty()) << "it goes on";
  PutTicks(8, 501);
  EXPECT_TRUE(LookAt(7));
  EXPECT_THAT(watch_.faults(),
              ElementsAre(NodeFault{
                  "R-PAU-005",
                  "no rank of this node had a processor for about 5 s from 00:00:01Z, and neither "
                  "disks nor networks moved what others do not"}));
  LookFrom(8, 9);
  PutTicks(8, 502);
  EXPECT_FALSE(LookAt(10)) << "a second is none";
}

TEST_F(StallWatchTest, OneThatEndsWithItsRunIsTold) {
  LookFrom(0, 4);
  EXPECT_TRUE(Look(4.5, {}));
  EXPECT_FALSE(Look(4.6, {}));
  EXPECT_THAT(watch_.faults(), SizeIs(1));
}

TEST_F(StallWatchTest, OneRankThatWorksIsEnough) {
  for (int second = 0; second < 9; ++second) {
    PutTicks(8, 500 + second);
    LookAt(second);
  }
  EXPECT_FALSE(Look(9, {}));
}

TEST_F(StallWatchTest, SoIsAChildThatWorksOrIsStarted) {
  below_[8] = {9};
  for (int second = 0; second < 5; ++second) {
    PutTicks(9, 10 + second);
    LookAt(second);
  }
  for (int second = 5; second < 9; ++second) {
    below_[8].push_back(20 + second);
    LookAt(second);
  }
  EXPECT_FALSE(Look(9, {}));
}

TEST_F(StallWatchTest, SoAreDisksNetworksAndFabrics) {
  for (int second = 0; second < 4; ++second) {
    Put("proc/diskstats", absl::StrCat("254 0 vda 1 0 ", second * 300, " 0 1 0 10 0 0 0 0\n"));
    LookAt(second);
  }
  for (int second = 4; second < 8; ++second) {
    Put("proc/net/dev", absl::StrCat("eth0: ", second * 200'000, " 0 0 0 0 0 0 0 5 0\n"));
    LookAt(second);
  }
  Put("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "5\n");
  for (int second = 8; second < 12; ++second) {
    Put("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data",
        absl::StrCat(second * 30'000, "\n"));
    LookAt(second);
  }
  EXPECT_FALSE(Look(12, {}));
}

TEST_F(StallWatchTest, WhatOtherServicesMoveIsNoWork) {
  for (int second = 0; second < 5; ++second) {
    Put("proc/net/dev", absl::StrCat("  lo: ", second * 9'000'000, " 0 0 0 0 0 0 0 5 0\neth0: ",
                                     second * 50'000, " 0 0 0 0 0 0 0 5 0\n"));
    LookAt(second);
  }
  EXPECT_TRUE(Look(5, {}));
}

TEST_F(StallWatchTest, WhereAGpuMayWorkNothingIsSaid) {
  for (const char* gpu : {"dev/nvidia0", "dev/kfd", "dev/dri/renderD128", "dev/accel/accel0"}) {
    Put(gpu, "");
    LookFrom(0, 5);
    EXPECT_FALSE(Look(6, {})) << gpu;
    std::filesystem::remove_all(dir_.Path("dev"));
    Look(6, {});
  }
}

TEST_F(StallWatchTest, AFabricThatCannotBeAskedMayWork) {
  Put("sys/class/infiniband/mlx5_0/ports/1/state", "ACTIVE\n");
  LookFrom(0, 5);
  EXPECT_FALSE(Look(6, {}));
}

TEST_F(StallWatchTest, NobodyKnowsWhatWasWhileNobodyWatched) {
  LookAt(0);
  LookAt(1);
  LookAt(30);
  LookAt(31);
  EXPECT_FALSE(Look(32, {})) << "the step stood still itself";
}

TEST_F(StallWatchTest, ProcessesThatCannotBeSeenAccuseNobody) {
  std::filesystem::remove(dir_.Path("proc/8/stat"));
  LookFrom(0, 5);
  EXPECT_FALSE(Look(6, {}));
}

class StalledRanksTest : public StepFixture {};

// Its rank reads its data and then waits for a lock that this test has.
TEST_F(StalledRanksTest, ALockThatIsNotGivenIsFound) {
  const std::string path = run_.dir.Path("lock");
  const UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  const std::string waits = run_.dir.Path("waits");
  run_.Trainer("read x < $DATA/train/a.bin; touch " + waits + "; flock " + path + " true");
  const ProcessId step = Start();
  ASSERT_TRUE(testing::Await([&] { return FileExists(waits); }));
  const RealClock clock;
  for (const MonoTime end = clock.Mono() + absl::Seconds(6); clock.Mono() < end;)
    poll(nullptr, 0, 50);  // is what is to be seen
  ASSERT_EQ(flock(lock.get(), LOCK_UN), 0);
  EXPECT_EQ(Finish(step).code, 0);
  const auto faults = directory_.ReadFaults(directory_.RanksWatchedPath());
  // Others of this machine may have moved more meanwhile than a quiet node's services do.
  if (!faults.ok()) GTEST_SKIP() << "disks or networks were busy, or there is a GPU";
  EXPECT_THAT(*faults, Contains(Field(&NodeFault::rule, "R-PAU-005")));
}

}  // namespace
}  // namespace assay::agent
