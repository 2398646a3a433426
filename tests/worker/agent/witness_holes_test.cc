#include "worker/agent/witness_holes.h"

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/process.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/rank_powers.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;

std::vector<std::string> CodesOf(const WatchFacts& facts) {
  std::vector<std::string> codes;
  for (const WitnessHole& hole : HolesOf(facts))
    codes.push_back(hole.code);
  return codes;
}

FileSystem Of(long type) {
  return FileSystemOfType(type, /*is_virtual=*/false);
}

TEST(WitnessHolesTest, EachHasItsCode) {
  constexpr long kExt4 = 0xEF53;
  constexpr long kNfs = 0x6969;
  constexpr long kFuse = 0x65735546;
  EXPECT_THAT(CodesOf({.file_system = Of(kExt4), .kernel = "6.18.44"}), ElementsAre("W-NO-GATE"))
      << "the best there is without a gate";
  EXPECT_THAT(
      CodesOf({.names_processes = false,
               .why_folders = "inotify watches folders",
               .file_system = Of(kNfs),
               .kernel = "6.1.0-56-cloud-amd64"}),
      ElementsAre("W-NO-GATE", "W-NO-FS-MARK", "W-NO-PID", "W-NETWORK-FS", "W-OVERLAY-OLD"));
  EXPECT_THAT(CodesOf({.file_system = Of(kFuse), .kernel = "7.0-rc1"}),
              ElementsAre("W-NO-GATE", "W-NETWORK-FS"));
  EXPECT_THAT(CodesOf({.file_system = Of(0x1234), .kernel = "unknown"}),
              ElementsAre("W-NO-GATE", "W-NETWORK-FS", "W-OVERLAY-OLD"));
  EXPECT_THAT(HolesOf({.is_read_only = true})[0].why, HasSubstr("mappings of staged copies"));
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

}  // namespace
}  // namespace assay::agent
