// Programs that a launcher of the site starts: what is started, who is let in, and how it all ends.
// Most launchers here are small scripts that do what srun and mpirun do, also what these do rarely.

#include "worker/agent/workload/launcher.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"

#include "common/exit_code.h"
#include "common/process.h"
#include "common/program_contract.h"
#include "tests/support/await.h"
#include "tests/worker/agent/step_fixture.h"
#include "worker/agent/entrance.h"
#include "worker/agent/workload/program.h"

namespace assay::agent {
namespace {

using testing::Await;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

// A variable of this process for the time of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name); before != nullptr) before_ = before;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~ScopedVariable() { before_.has_value() ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class LauncherTest : public StepFixture {
 protected:
  LauncherTest() {
    run_.worker.set_isolation(v1::WorkerConfig::NONE);
    run_.spec.mutable_command()->set_launcher(kMpirun);
    run_.spec.mutable_command()->set_stop_grace_s(1);
    run_.spec.set_ranks_per_node(2);
    run_.spec.set_rendezvous_token(run_.dir.Path(""));  // other tests have the same run
    run_.spec.add_hosts("127.0.0.1");
    for (const char* word : {"sh", "-c", "exit 0"})
      run_.spec.mutable_command()->add_command(word);
  }
  void Script(const std::string& text) { run_.spec.mutable_command()->set_command(2, text); }
  // Stands in the place of mpirun; `enter RANK` starts the process that comes in as that rank.
  void Launcher(const std::string& text) {
    CHECK_OK(MakeDirectories(run_.dir.Path("bin")));
    CHECK_OK(WriteFileAtomic(
        run_.dir.Path("bin/mpirun"),
        absl::StrCat("#!/bin/bash\nwhile [ \"$1\" != --bind-to ]; do shift; done; shift 2\n"
                     "enter() { OMPI_COMM_WORLD_RANK=$1 OMPI_TOLD=of_$1 exec \"${@:2}\"; }\n",
                     text, "\n"),
        0755));
    path_.emplace("PATH", absl::StrCat(run_.dir.Path("bin"), ":", std::getenv("PATH")).c_str());
  }
  std::string Output(const std::string& name) const {
    return ReadFile(directory_.Path(name)).value_or("");
  }
  // The number that the script wrote as `name` into its output folder.
  pid_t Number(const std::string& name) const {
    pid_t pid = 0;
    const std::string path = JoinPath(directory_.RanksPath(), absl::StrCat("output/", name));
    return absl::SimpleAtoi(ReadFile(path).value_or(""), &pid) ? pid : 0;
  }
  int Enter(int rank, const char* ranks_per_node = "2") {
    const std::string number = absl::StrCat(rank);
    const ScopedVariable variable("OMPI_COMM_WORLD_RANK", number.c_str());
    return RunEnter({EntranceName(run_.spec), ranks_per_node}, absl::ZeroDuration());
  }

  const ScopedVariable none_[3] = {
      {"OMPI_COMM_WORLD_RANK", nullptr}, {"PMIX_RANK", nullptr}, {"SLURM_PROCID", nullptr}};
  const ScopedVariable job_{"SLURM_JOB_ID", nullptr};
  std::optional<ScopedVariable> path_;
};

constexpr char kBoth[] = "(enter 0 \"$@\") & (enter 1 \"$@\") & wait";

TEST_F(LauncherTest, EachOfItsProcessesIsARankOfTheStepWithItsVariables) {
  Launcher(kBoth);
  run_.spec.mutable_command()->mutable_env()->insert({"MY_OWN", "1"});
  setenv("SECRET_OF_THE_AGENT", "x", 1);
  Script("env; grep PPid /proc/$$/status; tr '\\0' ' ' < /proc/$PPID/cmdline");

  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output("launcher.out");

  const std::string said = Output("program_1.out");
  for (const char* word : {"ASSAY_RANK=1\n", "ASSAY_LOCAL_RANK=1\n", "RANK=1\n", "WORLD_SIZE=2\n",
                           "OMPI_TOLD=of_1\n", "OMPI_COMM_WORLD_RANK=1\n", "MY_OWN=1\n"})
    EXPECT_THAT(said, HasSubstr(word));
  EXPECT_THAT(said, Not(HasSubstr("SECRET")));
  EXPECT_THAT(said, HasSubstr("step_runner step ")) << "it is the step's own child";
  EXPECT_THAT(Output("program_0.out"), HasSubstr("ASSAY_RANK=0\n"));
}

TEST_F(LauncherTest, ARankThatDiesEndsAllWithItsOwnCode) {
  // The launcher ends what is left when one fails, as mpirun does, and is slow to end itself.
  Launcher("(enter 0 \"$@\") & first=$!; (enter 1 \"$@\"); code=$?; kill $first; exit $code");
  Script("[ $ASSAY_RANK = 1 ] && exit 7; trap '' TERM; while :; do sleep 0.1; done");

  EXPECT_EQ(Run(), (StepExit{static_cast<int>(ExitCode::kProgram),
                             "the program ended with code 7 on node 0 (rank 1)"}));
}

TEST_F(LauncherTest, WhatTheLauncherKillsEndsAsAConsequence) {
  Launcher("(enter 0 \"$@\") & sleep 0.5; kill -9 $!; wait; echo lost n1 >&2; exit 5");
  run_.spec.set_ranks_per_node(1);
  Script("sleep 1000 & wait");

  const StepExit exit = Run();

  // Another node may know why: the coordinator prefers what that says.
  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kCommLost)) << exit.reason;
}

TEST_F(LauncherTest, ItsOwnFailureIsToldInItsWords) {
  Launcher("echo 'no such plug-in: pmix' >&2; exit 1");

  EXPECT_EQ(Run(), (StepExit{static_cast<int>(ExitCode::kCommLost),
                             "mpirun ended with code 1 on node 0: no such plug-in: pmix"}));
}

TEST_F(LauncherTest, ALauncherThatClaimsSuccessWithoutAllRanksFailsTheRun) {
  Launcher("(enter 0 \"$@\"); exit 0");

  const StepExit exit = Run();

  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kCommLost));
  EXPECT_THAT(exit.reason, HasSubstr("before it had started all processes"));
}

TEST_F(LauncherTest, NothingOfItStays) {
  Launcher("(setsid sleep 1000 &); " + std::string(kBoth));
  Script("setsid sleep 1000 & echo $! > left_$ASSAY_RANK");

  EXPECT_EQ(Run().code, 0);

  for (const char* name : {"left_0", "left_1"}) {
    ASSERT_GT(Number(name), 0) << name;
    EXPECT_THAT(IdentifyProcess(Number(name)), Not(IsOk())) << name;
  }
}

TEST_F(LauncherTest, OtherNodesWaitForTheirRanksAndRefuseOthers) {
  run_.spec.set_node_count(2);
  run_.spec.set_node_rank(1);
  run_.spec.add_hosts("127.0.0.1");
  Script("echo rank $ASSAY_RANK; exit $ASSAY_LOCAL_RANK");
  const ProcessId step = Start();
  ASSERT_TRUE(Await([&] { return FileExists(directory_.TrainersPath()); }));

  EXPECT_EQ(Enter(0), 1) << "of node 0, which has no step here";
  EXPECT_EQ(Enter(5, "3"), 1) << "of node 1 for whom counts otherwise, and of nobody here";
  EXPECT_EQ(Enter(2), 0);
  EXPECT_EQ(Enter(2), 1) << "has come already";
  EXPECT_EQ(Enter(3), 1) << "its code";

  EXPECT_EQ(Finish(step), (StepExit{static_cast<int>(ExitCode::kProgram),
                                    "the program ended with code 1 on node 1 (rank 3)"}));
  EXPECT_EQ(Output("program_2.out"), "rank 2\n");
  EXPECT_FALSE(FileExists(directory_.Path("launcher.out")));
}

TEST_F(LauncherTest, WhileItWaitsItCanBeStopped) {
  run_.spec.set_node_count(2);
  run_.spec.set_node_rank(1);
  const ProcessId step = Start();
  ASSERT_TRUE(Await([&] { return FileExists(directory_.TrainersPath()); }));
  CHECK_OK(SignalGroup(step, SIGTERM));
  EXPECT_EQ(Finish(step),
            (StepExit{static_cast<int>(ExitCode::kTerminated), "stopped on request"}));
}

TEST_F(LauncherTest, RootIsGivenUpOnceAllHaveCome) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can choose accounts";
  UseAccounts();
  Launcher("id -un; " + std::string(kBoth));
  ASSERT_EQ(chmod(run_.dir.Path("bin").c_str(), 0755), 0);
  Script("id -un; [ $ASSAY_RANK = 0 ] && sleep 0.5; ps -o user= -p $PPID");

  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output("launcher.out");

  EXPECT_EQ(Output("launcher.out"), "nobody\n");
  EXPECT_EQ(Output("program_0.out"), "nobody\ndaemon\n");
}

TEST_F(LauncherTest, TheFolderOfItsServerIsInTheSandbox) {
  if (access("/usr/bin/bwrap", X_OK) != 0) GTEST_SKIP() << "bubblewrap is not installed";
  run_.worker.set_isolation(v1::WorkerConfig::NAMESPACES);
  CHECK_OK(MakeDirectories(run_.dir.Path("pmix")));
  CHECK_OK(WriteFileAtomic(run_.dir.Path("pmix/server"), "found"));
  CHECK_OK(WriteFileAtomic(run_.dir.Path("secret"), "secret"));
  Launcher(absl::StrCat("export PMIX_SERVER_TMPDIR=", run_.dir.Path("pmix"), "; ", kBoth));
  Script(absl::StrCat("cat $PMIX_SERVER_TMPDIR/server; cat ", run_.dir.Path("secret"),
                      " 2> /dev/null; touch /dev/shm/$ASSAY_RANK; "
                      "until [ -e /dev/shm/0 ] && [ -e /dev/shm/1 ]; do sleep 0.01; done"));

  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output("launcher.out");
  EXPECT_EQ(Output("program_1.out"), "found");
}

TEST_F(LauncherTest, OpenMpiStartsRanksThroughIt) {
  if (access("/usr/bin/mpirun", X_OK) != 0) GTEST_SKIP() << "Open MPI is not installed";
  Script("echo $ASSAY_RANK $OMPI_COMM_WORLD_RANK $PMIX_RANK of $OMPI_COMM_WORLD_SIZE");

  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output("launcher.out");

  EXPECT_EQ(Output("program_0.out"), "0 0 0 of 2\n");
  EXPECT_EQ(Output("program_1.out"), "1 1 1 of 2\n");
}

TEST_F(LauncherTest, ARankIsFoundAsItsLauncherTellsIt) {
  EXPECT_THAT(RankOfThisProcess().status().message(), HasSubstr("only srun and mpirun"));
  const ScopedVariable of_srun("SLURM_PROCID", "3");
  EXPECT_EQ(*RankOfThisProcess(), 3);
  const ScopedVariable of_pmix("PMIX_RANK", "4");
  EXPECT_EQ(*RankOfThisProcess(), 4);
  const ScopedVariable of_mpirun("OMPI_COMM_WORLD_RANK", "5");
  EXPECT_EQ(*RankOfThisProcess(), 5);
  const ScopedVariable odd("OMPI_COMM_WORLD_RANK", "five");
  EXPECT_THAT(RankOfThisProcess(), Not(IsOk()));
}

TEST_F(LauncherTest, NodesAreNamedAsTheBatchSystemDoesAndInTheirOrder) {
  run_.spec.set_node_count(2);
  run_.spec.add_hosts("127.0.0.1");
  run_.spec.add_node_names("n7");
  run_.spec.add_node_names("n3");
  run_.spec.mutable_command()->set_launcher(kSrun);
  const StartContext context{.enter_program = "/opt/assay-worker", .entrance_name = "abc"};

  const RankCommand srun = LauncherCommand(run_.spec, context, "/run/hosts", "/run/out");

  EXPECT_THAT(srun.argv, IsSupersetOf({"srun", "--overlap", "--mpi=pmix", "--nodelist=/run/hosts",
                                       "--distribution=arbitrary", "--ntasks=4"}));
  EXPECT_THAT(std::vector<std::string>(srun.argv.end() - 4, srun.argv.end()),
              ElementsAre("/opt/assay-worker", "enter", "abc", "2"));
  ASSERT_EQ(srun.inputs.size(), 1u);
  EXPECT_EQ(srun.inputs[0].path, "/run/hosts");
  EXPECT_EQ(srun.inputs[0].content, "n7\nn7\nn3\nn3\n");

  const ScopedVariable job("SLURM_JOB_ID", "12");
  const ScopedVariable size("SLURM_JOB_NUM_NODES", "3");
  run_.spec.mutable_command()->set_launcher(kMpirun);
  const RankCommand mpirun = LauncherCommand(run_.spec, context, "/run/hosts", "/run/out");
  EXPECT_THAT(mpirun.argv, IsSupersetOf({"mpirun", "--hostfile", "/run/hosts", "seq"}));
  EXPECT_THAT(mpirun.environment, IsSupersetOf({"SLURM_OVERLAP=1", "SLURM_TASKS_PER_NODE=2(x3)"}));
}

TEST_F(LauncherTest, WhatCannotBeStartedHereSaysWhy) {
  run_.spec.mutable_command()->set_launcher(kSrun);
  StepExit exit = Run();
  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kNodeFailed));
  EXPECT_THAT(exit.reason, HasSubstr("in a Slurm job only"));

  ASSERT_THAT(RemoveTree(directory_.path()), IsOk());
  run_.spec.mutable_command()->set_launcher(kMpirun);
  const ScopedVariable path("PATH", "/nowhere");
  exit = Run();
  EXPECT_THAT(exit.reason, HasSubstr("install Open MPI"));
}

}  // namespace
}  // namespace assay::agent
