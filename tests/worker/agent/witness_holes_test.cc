#include "worker/agent/witness_holes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/account.h"
#include "worker/agent/rank_powers.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;

std::vector<std::string> CodesIn(const std::vector<WitnessHole>& holes) {
  std::vector<std::string> codes;
  for (const WitnessHole& hole : holes)
    codes.push_back(hole.code);
  return codes;
}

std::vector<std::string> CodesOf(const WatchFacts& facts) {
  return CodesIn(HolesOf(facts));
}

FileSystem Of(long type) {
  return FileSystemOfType(type, /*is_virtual=*/false);
}

TEST(WitnessHolesTest, EachHasItsCode) {
  constexpr long kExt4 = 0xEF53;
  constexpr long kNfs = 0x6969;
  constexpr long kFuse = 0x65735546;
  EXPECT_THAT(CodesOf({.file_system = Of(kExt4), .kernel = "6.18.44"}), ElementsAre());
  EXPECT_THAT(CodesOf({.names_processes = false,
                       .why_folders = "inotify watches folders",
                       .file_system = Of(kNfs),
                       .kernel = "6.1.0-56-cloud-amd64"}),
              ElementsAre("W-NO-FS-MARK", "W-NO-PID", "W-NETWORK-FS", "W-OVERLAY-OLD"));
  EXPECT_THAT(CodesOf({.file_system = Of(kFuse), .kernel = "7.0-rc1"}),
              ElementsAre("W-NETWORK-FS"));
  EXPECT_THAT(CodesOf({.file_system = Of(0x1234), .kernel = "unknown"}),
              ElementsAre("W-NETWORK-FS", "W-OVERLAY-OLD"));
  EXPECT_THAT(NoGate(/*are_copies=*/true, "why").why, HasSubstr("mappings of staged copies"));
}

GateRecord Exact() {
  return {.file_count = 4,
          .checked_files = 4,
          .checked_bytes = 4'000'000,
          .is_exact = true,
          .dataset_bytes = 4'000'000};
}

TEST(GateHolesTest, WhatWasReadPastTheGateIsOne) {
  EXPECT_THAT(CodesIn(HolesOf(Exact())), ElementsAre());
  EXPECT_EQ(ReadPastGate(Exact()), "");

  GateRecord record = Exact();
  record.armed_pages = 3;
  record.resident_pages = 3;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre())
      << "they were there when the caches had been reset";
  record.resident_pages = 4;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre("W-RESIDENT"));
  EXPECT_THAT(ReadPastGate(record), HasSubstr("come into memory"));

  record = Exact();
  record.device_bytes = 512;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre("W-DEVICE"));
  EXPECT_EQ(ReadPastGate(record), "") << "less than a thousandth";
  record.device_bytes = 4'001;
  EXPECT_THAT(ReadPastGate(record), HasSubstr("read from their device"));
}

TEST(GateHolesTest, WhatIsNotKnownIsOneAndNoCharge) {
  GateRecord record = Exact();
  record.checked_files = 3;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre("W-SAMPLED"));
  record.checked_files = 0;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre("W-NO-RESIDENCY"));

  record = Exact();
  record.is_exact = false;
  record.device_bytes = -1;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre("W-DEVICE"));
  record.device_bytes = 8 << 20;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre()) << "programs are read from devices, too";
  record.device_bytes = 1'000'000'000;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre("W-DEVICE"));
  EXPECT_EQ(ReadPastGate(record), "") << "of what is not known";
}

TEST(GateHolesTest, WhoHasMadeItsCopiesHasHadTheData) {
  GateRecord record = Exact();
  record.are_copies = true;
  record.is_exact = false;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre("W-STAGED"));
  record.resident_pages = 1'000;
  EXPECT_THAT(CodesIn(HolesOf(record)), ElementsAre("W-RESIDENT", "W-STAGED"));
  EXPECT_EQ(ReadPastGate(record), "") << "R-TIM-004 tells that";
}

TEST(GateRecordTest, ReadsBackAsWritten) {
  GateRecord record = Exact();
  record.path = "/d/\"x\"";
  record.stamp = {1'700'000'000'123'456, 42};
  record.held_us = -7;
  EXPECT_THAT(ParseGateRecord(GateRecordJson(record)), IsOkAndHolds(record));
  for (const char* text : {"", "beat", "{}", R"({"stamp": 1})", R"({"stamp": {}, "path": ""})"})
    EXPECT_THAT(ParseGateRecord(text), StatusIs(absl::StatusCode::kDataLoss)) << text;
}

TEST(RankPowersTest, FourCapabilitiesAndTheWitnesssAccountUndoIt) {
  constexpr uid_t kWitness = 2;
  constexpr char kRank[] = "Name:\tpython\nUid:\t65534\t65534\t65534\t65534\n";
  const auto with = [&](const char* capabilities) {
    return std::string(kRank) + "CapEff:\t" + capabilities + "\nNoNewPrivs:\t1\n";
  };
  EXPECT_EQ(PowersIn(with("0000000000000000"), kWitness, false), "");
  EXPECT_EQ(PowersIn(with("0000000000000020"), kWitness, false), "") << "KILL undoes nothing";
  EXPECT_EQ(PowersIn(with("0000000002000000"), kWitness, false), "has CAP_SYS_TIME");
  EXPECT_EQ(PowersIn(with("000001ffffffffff"), kWitness, false),
            "has CAP_SYS_ADMIN, has CAP_SYS_RAWIO, has CAP_SYS_TIME, has CAP_SYS_PTRACE");
  EXPECT_EQ(PowersIn(with("000001ffffffffff"), kWitness, true), "") << "in a namespace of its own";
  EXPECT_EQ(PowersIn(with("0000000000000000"), 65534, false),
            "has the account of its witness or root's (65534)");
  EXPECT_EQ(
      PowersIn(std::string(kRank) + "CapEff:\t000001ffffffffff\nNoNewPrivs:\t0\n", kWitness, false),
      std::nullopt)
      << "not a rank yet: it has not given up what it will";
}

TEST(RankPowersTest, ARankIsLookedAtOnceItIsOne) {
  const absl::StatusOr<ProcessId> child = Spawn({.argv = {"/bin/sleep", "60"}});
  ASSERT_THAT(child, IsOk());
  RankPowers powers;
  powers.Look({{3, child->pid}});
  EXPECT_EQ(powers.Hole(), std::nullopt) << "it may still get privileges";
  ASSERT_EQ(kill(child->pid, SIGKILL), 0);
  ASSERT_THAT(WaitForExit(*child, kPatience), IsOk());

  const absl::StatusOr<ProcessId> rank =
      Spawn({.argv = {"/usr/bin/setpriv", "--no-new-privs", "/bin/sh", "-c",
                      "grep -q 'NoNewPrivs:.1' /proc/$$/status && exec sleep 60"}});
  ASSERT_THAT(rank, IsOk());
  while (!powers.Hole().has_value() && IsRunning(*rank))
    powers.Look({{3, rank->pid}});
  ASSERT_TRUE(powers.Hole().has_value());
  EXPECT_EQ(powers.Hole()->code, "W-TRAINER-ROOT");
  EXPECT_THAT(powers.Hole()->why, HasSubstr("rank 3 has "));
  ASSERT_EQ(kill(rank->pid, SIGKILL), 0);
  ASSERT_THAT(WaitForExit(*rank, kPatience), IsOk());
}

// As a unit with NoNewPrivileges has it, all the way from the fork to the rank's program.
TEST(RankPowersTest, WhatABecomingRankStillHasIsNotHeldAgainstIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has anything to give up";
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      execl(STEP_RUNNER, "/proc/self/exe", kRankMode, "65534:65534", "/bin/sleep", "60", nullptr);
      _exit(1);
    }
    RankPowers powers;
    std::string program;
    while (program != "sleep\n") {
      powers.Look({{0, child}});
      program = ReadFile(absl::StrCat("/proc/", child, "/comm")).value_or("sleep\n");
    }
    powers.Look({{0, child}}, /*touching=*/0);
    EXPECT_EQ(powers.Hole(), std::nullopt) << powers.Hole()->why;
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
  }
}

// Adversary: a program that calls itself as what becomes a rank is called.
TEST(RankPowersTest, WhoHasTouchedTheDataIsARankWhateverItIsCalled) {
  std::array<int, 2> pipe_fds{};
  ASSERT_EQ(pipe(pipe_fds.data()), 0);
  const pid_t child = fork();  // has this program's command line
  if (child == 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const bool is_told = write(pipe_fds[1], "x", 1) == 1;
    pause();
    _exit(is_told ? 0 : 1);
  }
  char told = 0;
  ASSERT_EQ(read(pipe_fds[0], &told, 1), 1);
  RankPowers powers;
  powers.Look({{3, child}});
  EXPECT_EQ(powers.Hole(), std::nullopt);
  powers.Look({{3, child}}, /*touching=*/2);
  EXPECT_EQ(powers.Hole(), std::nullopt);
  powers.Look({{3, child}}, /*touching=*/3);
  EXPECT_TRUE(powers.Hole().has_value());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  for (const int fd : pipe_fds)
    close(fd);
}

}  // namespace
}  // namespace assay::agent
