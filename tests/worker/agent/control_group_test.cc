// Where control groups are made, by what kernels say; and what they do to others' programs under a
// real step, where this machine lets tests make them.

#include "worker/agent/control_group.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/process.h"
#include "common/program_contract.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/step_fixture.h"
#include "worker/agent/attached_run.h"
#include "worker/agent/step_process.h"

namespace assay::agent {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;

constexpr char kSecondMount[] =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(GroupParentTest, IsTheProcessesOwnGroupOrWhatHoldsTheAgents) {
  EXPECT_THAT(FindGroupParent("0::/system.slice/assay-worker.service/assay-agent\n", kSecondMount),
              IsOkAndHolds(GroupParent{2, "/sys/fs/cgroup/system.slice/assay-worker.service",
                                       "/sys/fs/cgroup/system.slice/assay-worker.service"}));
  EXPECT_THAT(FindGroupParent("0::/\n", kSecondMount),
              IsOkAndHolds(GroupParent{2, "/sys/fs/cgroup", "/sys/fs/cgroup"}));
}

TEST(GroupParentTest, OfTwoVersionsThatWhichHasTheControllers) {
  const std::string mounts =
      "31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "32 30 0:28 / /sys/fs/cgroup/memory rw shared:5 - cgroup cgroup rw,memory\n"
      "33 30 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";
  const std::string groups = "8:pids:/\n4:memory:/jobs/7\n1:name=systemd:/a:b\n0::/x\n";
  EXPECT_THAT(FindGroupParent(groups, mounts),
              IsOkAndHolds(GroupParent{1, "/sys/fs/cgroup/memory/jobs/7", "/sys/fs/cgroup/pids"}));
}

TEST(GroupParentTest, AContainerSeesItsOwnGroupAsTheRoot) {
  const std::string mounts =
      "32 30 0:28 /docker/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
      "33 30 0:29 /docker/c1 /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
  const std::string groups = "8:pids:/docker/c1\n4:memory:/docker/c1/inner\n";
  EXPECT_THAT(FindGroupParent(groups, mounts),
              IsOkAndHolds(GroupParent{1, "/sys/fs/cgroup/memory/inner", "/sys/fs/cgroup/pids"}));
}

TEST(GroupParentTest, WithoutAnyThereIsNone) {
  EXPECT_THAT(FindGroupParent("", "23 1 0:22 / /proc rw - proc proc rw\n"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// Files in place of the kernel's, which makes them with each folder itself.
TEST(ControlGroupTest, OfVersion2AsksForDelegationWhereThereIsNone) {
  const testing::TempDir dir;
  const GroupParent parent{2, dir.Path("."), dir.Path(".")};
  CHECK_OK(WriteFileAtomic(dir.Path("cgroup.controllers"), "cpu memory\n"));
  EXPECT_THAT(ControlGroup::Make(parent, "g", {}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("\"pids\"")));
  CHECK_OK(WriteFileAtomic(dir.Path("cgroup.controllers"), "cpu memory pids\n"));
  EXPECT_THAT(ControlGroup::Make(parent, "g", {}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("DelegateSubgroup=")));
}

// Of real programs. The parent of all groups is that of this process.
class LimitTest : public StepFixture {
 protected:
  void SetUp() override {
    const auto parent = FindGroupParent(ReadFile("/proc/self/cgroup").value_or(""),
                                        ReadFile("/proc/self/mountinfo").value_or(""));
    if (!parent.ok()) GTEST_SKIP() << parent.status();
    const auto group = ControlGroup::Make(*parent, absl::StrCat("assay-test-", getpid()),
                                          {.memory_mib = 64, .process_count_max = 10});
    if (!group.ok()) GTEST_SKIP() << "no control groups here: " << group.status();
    CHECK_OK(RemoveControlGroup(group->folders()));
    run_.worker.set_isolation(v1::WorkerConfig::NONE);
    run_.spec.mutable_command()->set_launcher(kPerRank);
    run_.spec.mutable_command()->set_stop_grace_s(1);
    run_.spec.add_hosts("127.0.0.1");
  }
  void Script(const std::string& text) {
    run_.spec.mutable_command()->clear_command();
    for (const std::string& word : {std::string("sh"), std::string("-c"), text})
      run_.spec.mutable_command()->add_command(word);
  }
  std::string Output() const { return ReadFile(directory_.Path("program_0.out")).value_or(""); }
  std::vector<std::string> Folders() const {
    return absl::StrSplit(ReadFile(directory_.GroupPath()).value_or(""), '\n', absl::SkipEmpty());
  }
  void ExpectNoGroup() const {
    EXPECT_FALSE(Folders().empty());
    for (const std::string& folder : Folders())
      EXPECT_FALSE(FileExists(folder)) << folder;
  }
};

// tail keeps a line as long as it is; 200 MB of one come.
constexpr char kGreed[] = "head -c 200000000 /dev/zero | tail -n 1 | wc -c";

TEST_F(LimitTest, WhoNeedsMoreThanItsMemoryIsToldSo) {
  run_.spec.mutable_command()->set_memory_mib(64);
  run_.spec.set_node_count(2);
  run_.spec.set_node_rank(1);
  run_.spec.add_hosts("127.0.0.1");
  Script(absl::StrCat("set -e; ", kGreed, "; exit 5"));

  const StepExit exit = Run();

  EXPECT_EQ(exit.reason, "the program needed more than its memory_mib of 64 MiB on node 1");
  ExpectNoGroup();
}

TEST_F(LimitTest, EnoughIsEnoughAndTheBillSaysWhoLimits) {
  run_.spec.mutable_command()->set_memory_mib(400);
  Script(kGreed);

  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output();

  EXPECT_EQ(Output(), "200000000\n");
  EXPECT_THAT(ReadFile(directory_.MaterialsPath()),
              IsOkAndHolds(HasSubstr("\"limits\": \"cgroup v")));
  ExpectNoGroup();
}

TEST_F(LimitTest, ItsRanksShareIt) {
  run_.spec.mutable_command()->set_memory_mib(300);
  run_.spec.set_ranks_per_node(2);
  Script(
      "mkfifo p$RANK; (head -c 200000000 /dev/zero; exec sleep 1000) > p$RANK & "
      "tail -n 1 p$RANK > all$RANK; exit 5");

  EXPECT_THAT(Run().reason, HasSubstr("its memory_mib of 300 MiB on node 0"));
}

TEST_F(LimitTest, AFailureOfItsOwnIsTold) {
  run_.spec.mutable_command()->set_memory_mib(64);
  Script("exit 3");
  EXPECT_EQ(Run().reason, "the program ended with code 3 on node 0");
}

// Each process starts two more: 511, if nobody holds them.
constexpr char kForkBomb[] = R"(cat > bomb <<'EOF'
[ $1 -ge 8 ] && exec sleep 1000
sh bomb $(($1 + 1)) & sh bomb $(($1 + 1)) & sleep 1000
EOF
(setsid sh bomb 0 &)
until grep -q annot ../../program_0.out; do :; done; exit 0
)";

TEST_F(LimitTest, AForkBombIsHeldAndNothingOfItStays) {
  run_.worker.set_process_count_max(50);
  run_.spec.set_run_timeout_ms(20'000);
  Script(kForkBomb);

  Run();

  EXPECT_THAT(Output(), HasSubstr("annot fork"));
  ExpectNoGroup();
}

TEST_F(LimitTest, WhatAStepLeavesThatIsKilledTheAgentEnds) {
  Script(absl::StrCat("(setsid sh -c 'echo $$ > other; exec sleep 1000' &); exec sleep 1000"));
  const ProcessId step = Start();
  const std::string pid_path = JoinPath(directory_.RanksPath(), "output/other");
  while (ReadFile(pid_path).value_or("").empty())
    ASSERT_TRUE(IsRunning(step)) << Output();
  const absl::StatusOr<ProcessId> other = IdentifyProcess(std::stoi(*ReadFile(pid_path)));
  ASSERT_THAT(other, IsOk());
  kill(step.pid, SIGKILL);
  ASSERT_THAT(WaitForExit(step, kPatience), IsOk());
  EXPECT_TRUE(IsRunning(*other));

  const RealClock clock;
  EXPECT_THAT(ResolveExit(directory_, clock), IsOk());

  EXPECT_FALSE(IsRunning(*other));
  ExpectNoGroup();
}

TEST_F(LimitTest, ACopyOfTheRunsDirectoryEndsNothing) {
  CHECK_OK(MakeDirectories(directory_.path()));
  const auto group = MakeRunGroup(directory_, {.process_count_max = 10});
  ASSERT_THAT(group, IsOk());
  const RunDirectory copy(run_.dir.Path("copy"));
  CHECK_OK(MakeDirectories(copy.path()));
  CHECK_OK(WriteFileAtomic(copy.GroupPath(), *ReadFile(directory_.GroupPath())));

  EXPECT_THAT(RemoveRunGroup(copy), IsOk());

  for (const std::string& folder : group->folders())
    EXPECT_TRUE(FileExists(folder)) << folder;
}

TEST_F(LimitTest, AnAccountOfTheirOwnIsLimitedTooAndTheNextAgentTidiesUp) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can choose accounts";
  UseAccounts();
  run_.spec.mutable_command()->set_memory_mib(64);
  Script(absl::StrCat("set -e; id -un; (setsid sleep 1000 &); ", kGreed, "; exit 5"));

  EXPECT_THAT(Run().reason, HasSubstr("its memory_mib of 64 MiB on node 0")) << Output();

  EXPECT_THAT(Output(), HasSubstr("nobody\n"));
  for (const std::string& folder : Folders())
    EXPECT_THAT(ReadFile(JoinPath(folder, "cgroup.procs")), IsOkAndHolds("")) << folder;
  const RealClock clock;
  EXPECT_TRUE(AttachedRun(directory_, run_.key, &clock).Observe().exit.has_value());
  ExpectNoGroup();
}

TEST_F(LimitTest, ASandboxIsInsideOfIt) {
  if (access("/usr/bin/bwrap", X_OK) != 0) GTEST_SKIP() << "bubblewrap is not installed";
  run_.worker.set_isolation(v1::WorkerConfig::NAMESPACES);
  run_.spec.mutable_command()->set_memory_mib(64);
  Script(absl::StrCat("head -c 200000000 /dev/zero > /dev/shm/much"));

  EXPECT_THAT(Run().reason, HasSubstr("its memory_mib of 64 MiB on node 0")) << Output();
  ExpectNoGroup();
}

}  // namespace
}  // namespace assay::agent
