// The step as a real process over real trainers, which are small shell scripts.

#include "worker/agent/step.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "common/process.h"
#include "tests/support/await_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/step_fixture.h"
#include "worker/agent/account.h"
#include "worker/agent/rendezvous_listener.h"
#include "worker/agent/step_process.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using ::testing::Not;
using testing::StatusIs;

class StepTest : public StepFixture {
 protected:
  std::string OutputPath(int rank) const {
    return directory_.Path(absl::StrCat("trainer_", rank, ".out"));
  }
  std::string Read(const std::string& path) {
    const absl::StatusOr<std::string> text = ReadFile(path);
    return text.ok() ? *text : text.status().ToString();
  }
  // A trainer that reads `file` and lives until the step has written the touch down.
  std::string Reading(const std::string& file) const {
    return absl::StrCat("read x < ", file, "\nuntil [ -e ", directory_.TouchPath(), " -o -e ",
                        directory_.ObservedTouchPath(), " ]; do sleep 0.01; done");
  }
  // The run's touch where this process may use fanotify, else what was observed.
  static std::vector<std::string> CodesOf(const Touch& touch) {
    std::vector<std::string> codes;
    for (const WitnessHole& hole : touch.holes)
      codes.push_back(hole.code);
    return codes;
  }
  absl::StatusOr<Touch> ReadTouch() const {
    return directory_.ReadTouch(FileExists(directory_.TouchPath())
                                    ? directory_.TouchPath()
                                    : directory_.ObservedTouchPath());
  }
  // Blocks until the trainer has written to the named pipe.
  void MakePipe() { ASSERT_EQ(system(("mkfifo " + pipe_).c_str()), 0); }
  void AwaitTrainer() { testing::AwaitWriter(pipe_); }

  const std::string pipe_ = run_.dir.Path("ready");
  const RealClock clock_{};
};

TEST_F(StepTest, GivesEveryRankItsSpecEnvironmentAndOutput) {
  run_.spec.set_ranks_per_node(2);
  run_.spec.set_node_rank(0);
  (*run_.worker.mutable_trainer_environment())["GREETING"] = "hello";
  run_.Trainer(
      "echo rank=$RANK threads=$OMP_NUM_THREADS $GREETING in $(pwd) $(ulimit -c) $(umask); echo to "
      "$LOG >&2");

  EXPECT_EQ(Run(), (StepExit{0, "finished"}));

  EXPECT_EQ(Read(OutputPath(0)), "rank= threads=2 hello in " + directory_.RanksPath() +
                                     " 0 0077\nto " + directory_.ResultPath(3) + "\n");
  EXPECT_THAT(Read(OutputPath(1)), HasSubstr("rank=1 threads=2"));
}

TEST_F(StepTest, HandsTheListeningSocketToRankZeroAlone) {
  run_.spec.set_ranks_per_node(2);
  run_.Trainer(
      "LISTENER=$(field rendezvous_listener)\n"
      "[ -S /proc/$$/fd/3 ] && echo socket as ${LISTENER:-none} || echo none");
  CHECK_OK(PrepareRun(directory_, run_.spec, run_.worker, "{}"));
  const absl::StatusOr<RendezvousListener> listener = RendezvousListener::Open("127.0.0.1");
  ASSERT_THAT(listener, IsOk());

  const absl::StatusOr<ProcessId> step = StartStepProcess(directory_, STEP_RUNNER, listener->fd());

  ASSERT_THAT(step, IsOk());
  EXPECT_EQ(Finish(*step).code, 0);
  EXPECT_EQ(Read(OutputPath(0)), "socket as 3\n");
  EXPECT_EQ(Read(OutputPath(1)), "none\n");
}

TEST_F(StepTest, LogsTheClearedCachesFirstAndOnceOnNodeZero) {
  run_.Trainer("echo ':::MLLOG {}' >> $LOG");
  EXPECT_EQ(Run().code, 0);
  EXPECT_THAT(Read(directory_.ResultPath(3)),
              AllOf(::testing::StartsWith(":::MLLOG {\"namespace\": \"\", \"time_ms\": "),
                    HasSubstr("\"key\": \"cache_clear\", \"value\": true"),
                    HasSubstr("\"method\": \"fadvise\", \"file_count\": 2, \"resident_pages\": 0, "
                              "\"checked_files\": 2, \"bound_bytes\": "),
                    ::testing::EndsWith("}\n:::MLLOG {}\n")));
}

TEST_F(StepTest, OtherNodesWriteNoLog) {
  run_.spec.set_node_count(2);
  run_.spec.set_node_rank(1);
  run_.Trainer("echo $RANK");
  EXPECT_EQ(Run().code, 0);
  EXPECT_FALSE(FileExists(directory_.ResultPath(3)));
  EXPECT_TRUE(FileExists(OutputPath(1)));  // its rank in the gang
}

TEST_F(StepTest, ReportsCodesAndSignalsOfTrainers) {
  struct Case {
    const char* script;
    int code;
    const char* reason;
  };
  for (const Case& c :
       {Case{"exit 3", 3, "dataset is missing"}, Case{"exit 42", 42, "code of its own"},
        Case{"exit 10", 1, "code of its own"}, Case{"kill -SEGV $$", 128 + SIGSEGV, "signal 11"}}) {
    SCOPED_TRACE(c.script);
    ASSERT_THAT(RemoveTree(directory_.path()), IsOk());
    run_.Trainer(c.script);
    const StepExit exit = Run();
    EXPECT_EQ(exit.code, c.code);
    EXPECT_THAT(exit.reason, AllOf(HasSubstr("rank 0"), HasSubstr(c.reason)));
  }
}

TEST_F(StepTest, TheFirstFailureEndsTheOtherRanks) {
  run_.spec.set_ranks_per_node(3);
  // The last rank fails; the first ignores TERM, the second obeys it.
  run_.Trainer(
      "case \"$RANK\" in\n"
      "2) exit 4 ;;\n"
      "1) while :; do sleep 1; done ;;\n"
      "*) trap '' TERM; while :; do sleep 1; done ;;\n"
      "esac");
  const StepExit exit = Run();
  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kCommLost));
  EXPECT_THAT(exit.reason, HasSubstr("rank 2"));
  const absl::StatusOr<ProcessRecord> trainers =
      directory_.ReadProcesses(directory_.TrainersPath());
  ASSERT_THAT(trainers, IsOk());
  ASSERT_EQ(trainers->processes.size(), 3U);
  for (const ProcessId& trainer : trainers->processes)
    EXPECT_FALSE(IsRunning(trainer));
}

TEST_F(StepTest, TheTimeLimitEndsARun) {
  run_.spec.set_run_timeout_ms(50);
  run_.Trainer("trap '' TERM; while :; do sleep 1; done");
  const StepExit exit = Run();
  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kTerminated));
  EXPECT_THAT(exit.reason, HasSubstr("time limit of 50ms"));
}

TEST_F(StepTest, AStopRequestEndsARun) {
  MakePipe();
  run_.Trainer("trap 'exit 9' TERM; echo > " + pipe_ + "; while :; do sleep 0.1; done");
  const ProcessId step = Start();
  AwaitTrainer();

  ASSERT_THAT(StopStepProcess(directory_), IsOk());

  EXPECT_EQ(Finish(step), (StepExit{9, "stopped on request"}));
  EXPECT_TRUE(FileExists(directory_.StoppingPath())) << "who waits for the step sees that it stops";
}

TEST_F(StepTest, WritesDownWhenARankWasStopped) {
  MakePipe();
  run_.Trainer("echo > " + pipe_ +
               "; until [ -e ../witness/pauses.json ]; do sleep 0.01; done\n"
               "until grep -q end_mono_ns ../witness/pauses.json; do sleep 0.01; done");
  const ProcessId step = Start();
  AwaitTrainer();
  while (!FileExists(directory_.TrainersPath())) {
  }
  const absl::StatusOr<ProcessRecord> trainers =
      directory_.ReadProcesses(directory_.TrainersPath());
  ASSERT_THAT(trainers, IsOk());
  const pid_t rank = trainers->processes.front().pid;

  ASSERT_EQ(kill(rank, SIGSTOP), 0);
  while (!FileExists(directory_.PausesPath())) {
  }
  ASSERT_EQ(kill(rank, SIGCONT), 0);

  EXPECT_EQ(Finish(step).code, 0);
  const absl::StatusOr<std::vector<Pause>> pauses = directory_.ReadPauses();
  ASSERT_THAT(pauses, IsOk());
  ASSERT_EQ(pauses->size(), 1U);
  EXPECT_EQ((*pauses)[0].rank, 0);
  ASSERT_TRUE((*pauses)[0].end.has_value());
  EXPECT_GT((*pauses)[0].end->mono_ns, (*pauses)[0].begin.mono_ns);
}

TEST_F(StepTest, AStopBeforeTheStartStartsNoTrainer) {
  run_.Trainer("touch " + run_.dir.Path("ran"));
  ASSERT_THAT(PrepareRun(directory_, run_.spec, run_.worker, "{}"), IsOk());
  ASSERT_THAT(StopStepProcess(directory_), IsOk());
  EXPECT_EQ(Run(), (StepExit{9, "stopped on request"}));
  EXPECT_FALSE(FileExists(run_.dir.Path("ran")));
}

TEST_F(StepTest, ARunStartsAtMostOnce) {
  run_.Trainer("echo once >> " + run_.dir.Path("ran"));
  EXPECT_EQ(Run().code, 0);
  EXPECT_EQ(Run().code, 0);
  EXPECT_EQ(Read(run_.dir.Path("ran")), "once\n");
}

TEST_F(StepTest, TwoStepsAtOnceStartTheRunOnce) {
  run_.Trainer("echo once >> " + run_.dir.Path("ran"));
  const ProcessId first = Start();
  const absl::StatusOr<ProcessId> second = StartStepProcess(directory_, STEP_RUNNER);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(WaitForExit(*second, kPatience), IsOkAndHolds(0));
  EXPECT_EQ(Finish(first).code, 0);
  EXPECT_EQ(Read(run_.dir.Path("ran")), "once\n");
}

TEST_F(StepTest, WitnessesTheFirstTouchOfTheDataset) {
  run_.Trainer(Reading("$DATA/train/a.bin"));
  const Stamp before = StampNow(clock_);
  EXPECT_EQ(Run().code, 0);
  const absl::StatusOr<Touch> touch = ReadTouch();
  ASSERT_THAT(touch, IsOk());
  EXPECT_EQ(touch->path, run_.dir.Path("dataset/train/a.bin"));
  EXPECT_GT(touch->stamp.mono_ns, before.mono_ns);
  EXPECT_LT(touch->stamp.mono_ns, StampNow(clock_).mono_ns);
  EXPECT_THAT(CodesOf(*touch), Contains("W-TRAINER-ROOT")) << "its ranks have its account";
  EXPECT_EQ(touch->gate.has_value(), touch->watched == "file system");
  EXPECT_EQ(touch->rank.has_value(), touch->is_attributed);
}

TEST_F(StepTest, WitnessesTheFirstTouchOfAnArchive) {
  const std::string dataset = run_.dir.Path("dataset");
  ASSERT_EQ(system(absl::StrCat("cd ", dataset, "; mv train shards; rm -r validation").c_str()), 0);
  run_.Trainer(Reading("$DATA/shards/a.bin"));
  EXPECT_EQ(Run().code, 0);
  EXPECT_EQ(ReadTouch()->path, dataset + "/shards/a.bin");
  EXPECT_THAT(Read(directory_.CachesPath()), HasSubstr("\"checked_files\": 1"));
}

// Two agents on one host, without the power over fanotify: while runs of the one begin, the other
// resets the caches of the same dataset, which opens every file. The first touch that is seen is
// never that.
TEST_F(StepTest, TheOtherAgentsCacheResetsTouchNothing) {
  constexpr int kRepeats = 25;
  setenv("STEP_FANOTIFY", "0", 1);
  const absl::Cleanup restore = [] { unsetenv("STEP_FANOTIFY"); };
  RunFixture other;
  other.spec.mutable_dataset()->set_path(run_.dir.Path("dataset"));
  const RunDirectory others = *RunDirectory::ForRun(other.worker.data_directory(), other.key);
  run_.Trainer("date +%s%6N > " + run_.dir.Path("begun") + "; " + Reading("$DATA/train/a.bin"));
  for (int i = 0; i < kRepeats; ++i) {
    for (const RunDirectory* directory : {&directory_, &others})
      ASSERT_THAT(RemoveTree(directory->path()), IsOk());
    const ProcessId own = Start();
    ASSERT_THAT(PrepareRun(others, other.spec, other.worker, "{}"), IsOk());
    const absl::StatusOr<ProcessId> second = StartStepProcess(others, STEP_RUNNER);
    ASSERT_THAT(second, IsOk());

    EXPECT_EQ(Finish(own).code, 0);
    EXPECT_THAT(WaitForExit(*second, kPatience), IsOkAndHolds(0));

    EXPECT_FALSE(FileExists(directory_.TouchPath())) << "inotify attributes nothing";
    const absl::StatusOr<Touch> touch = directory_.ReadTouch(directory_.ObservedTouchPath());
    ASSERT_THAT(touch, IsOk());
    int64_t begun_us = 0;
    ASSERT_TRUE(absl::SimpleAtoi(Read(run_.dir.Path("begun")), &begun_us));
    EXPECT_GE(touch->stamp.wall_us, begun_us) << "run " << i << " " << TouchJson(*touch);
  }
}

TEST_F(StepTest, WhereStagingIsNotTimedTheFirstReadOfTheCopyCounts) {
  run_.spec.mutable_dataset()->set_is_staged(true);
  run_.spec.set_is_staging_timed(false);
  run_.Trainer(std::string("cp $DATA/train/a.bin $STAGE/train/a.bin\n"
                           "cp $DATA/validation/a.bin $STAGE/validation/a.bin\n") +
               Reading("$STAGE/validation/a.bin"));
  EXPECT_EQ(Run().code, 0) << Read(OutputPath(0));
  const absl::StatusOr<Touch> touch = ReadTouch();
  ASSERT_THAT(touch, IsOk());
  EXPECT_EQ(touch->path, run_.dir.Path("stage/r-1-g1/validation/a.bin"));
  EXPECT_EQ(touch->access, "read");
  EXPECT_FALSE(FileExists(run_.dir.Path("stage/r-1-g1")));  // the room is given back
}

TEST_F(StepTest, AMissingDatasetIsBadData) {
  run_.spec.mutable_dataset()->set_path("/no/such/dataset");
  const StepExit exit = Run();
  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kBadData));
  EXPECT_THAT(exit.reason, HasSubstr("/no/such/dataset"));
}

TEST_F(StepTest, AMissingTrainerIsNamed) {
  run_.worker.set_trainer_program("/no/such/trainer");
  EXPECT_THAT(Run().reason, HasSubstr("/no/such/trainer"));
}

TEST_F(StepTest, ADeadStepIsResolvedAndItsTrainersKilled) {
  MakePipe();
  run_.Trainer("echo > " + pipe_ + "; trap '' TERM; while :; do sleep 1; done");
  const ProcessId step = Start();
  AwaitTrainer();
  EXPECT_THAT(ResolveExit(directory_, clock_), IsOkAndHolds(std::nullopt));  // it lives
  while (!FileExists(directory_.TrainersPath())) {
  }
  const absl::StatusOr<ProcessRecord> trainers =
      directory_.ReadProcesses(directory_.TrainersPath());
  ASSERT_THAT(trainers, IsOk());
  ASSERT_EQ(kill(step.pid, SIGKILL), 0);
  ASSERT_THAT(WaitForExit(step, kPatience), IsOk());

  const absl::StatusOr<std::optional<StepExit>> exit = ResolveExit(directory_, clock_);

  ASSERT_THAT(exit, IsOk());
  ASSERT_TRUE(exit->has_value());
  EXPECT_EQ((*exit)->code, static_cast<int>(ExitCode::kNodeFailed));
  EXPECT_THAT((*exit)->reason, HasSubstr("supervised the trainers died"));
  while (IsRunning(trainers->processes.front())) {  // SIGKILL is on its way
  }
  EXPECT_THAT(directory_.ReadExit(), IsOkAndHolds(**exit));
}

TEST_F(StepTest, ARunOfAnEarlierBootWasLostByItsNode) {
  ASSERT_THAT(PrepareRun(directory_, run_.spec, run_.worker, "{}"), IsOk());
  ASSERT_THAT(WriteFileAtomic(directory_.StepPath(), R"({"boot_id": "before", "processes": []})"),
              IsOk());

  const absl::StatusOr<std::optional<StepExit>> exit = ResolveExit(directory_, clock_);

  ASSERT_THAT(exit, IsOk());
  EXPECT_EQ(**exit, (StepExit{static_cast<int>(ExitCode::kNodeFailed),
                              "the node was restarted while it ran"}));
}

TEST_F(StepTest, AStepThatNeverBeganCannotBeginOnceItIsResolved) {
  ASSERT_THAT(PrepareRun(directory_, run_.spec, run_.worker, "{}"), IsOk());
  const absl::StatusOr<std::optional<StepExit>> exit = ResolveExit(directory_, clock_);
  ASSERT_THAT(exit, IsOk());
  ASSERT_TRUE(exit->has_value());
  run_.Trainer("touch " + run_.dir.Path("ran"));
  EXPECT_EQ(Run(), **exit);
  EXPECT_FALSE(FileExists(run_.dir.Path("ran")));
}

// A stranger, or a rank of the same account, can lock any file that it may open.
TEST_F(StepTest, AStrangerWithTheLockDoesNotDelayTheEndOfADeadStep) {
  ASSERT_THAT(PrepareRun(directory_, run_.spec, run_.worker, "{}"), IsOk());
  const absl::StatusOr<ProcessId> gone = Spawn({.argv = {"/bin/true"}});
  ASSERT_THAT(gone, IsOk());
  ASSERT_THAT(WaitForExit(*gone, kPatience), IsOk());
  const UniqueFd lock(open(directory_.LockPath().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_THAT(ResolveExit(directory_, clock_), IsOkAndHolds(std::nullopt)) << "it may be starting";
  ASSERT_THAT(directory_.WriteProcesses(directory_.StepPath(), {*gone}), IsOk());

  const absl::StatusOr<std::optional<StepExit>> exit = ResolveExit(directory_, clock_);

  ASSERT_THAT(exit, IsOk());
  ASSERT_TRUE(exit->has_value());
  EXPECT_EQ((*exit)->code, static_cast<int>(ExitCode::kNodeFailed));
}

// Of runs whose ranks have an account, and whose step has another.
class AccountsTest : public StepTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can choose accounts";
    UseAccounts();
  }

  // What a trainer says first: by then its step is not root.
  static constexpr char kAwaitStep[] =
      "while grep -q '^Uid:.0' /proc/$PPID/status; do sleep 0.01; done\n";
};

// As a hostile trainer: what it can do beyond its own work.
TEST_F(AccountsTest, ARankCanDoItsWorkAndNothingElse) {
  const std::string key = run_.dir.Path("data/worker.key");
  ASSERT_THAT(WriteFileAtomic(key, "secret", 0600), IsOk());
  run_.spec.mutable_dataset()->set_is_staged(true);
  run_.Trainer(absl::StrCat(
      "id -un; id -Gn; grep -hE '^(CapPrm|CapBnd|CapAmb|NoNewPrivs):' /proc/self/status\n"
      "try() { \"$@\" > /dev/null 2>&1 && echo \"can: $*\" || echo \"cannot: $*\"; }\n"
      "echo saved > checkpoint && echo line >> $LOG && echo done >> ../progress.jsonl && "
      "cp $DATA/train/a.bin $STAGE/train/a.bin && echo worked\n"
      "try cat ",
      key,
      "; try cat ../spec.textproto; try ls ..; try ls ../witness\n"
      "try touch ../witness/exit.json; try rm -f ../step.json; try mv ../result_3.txt ../x\n"
      "try ln -sf /etc/passwd ../result_3.txt; try touch ../agent/spool; try kill -0 $PPID"));

  EXPECT_EQ(Run().code, 0) << Read(OutputPath(0));

  const std::string output = Read(OutputPath(0));
  EXPECT_THAT(output, AllOf(::testing::StartsWith("nobody\nnogroup\n"), HasSubstr("\nworked\n"),
                            HasSubstr("NoNewPrivs:\t1"), HasSubstr("CapPrm:\t0000000000000000"),
                            HasSubstr("CapBnd:\t0000000000000000"),
                            HasSubstr("CapAmb:\t0000000000000000")));
  EXPECT_THAT(output, Not(HasSubstr("can: ")));
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 17) << output;
  EXPECT_THAT(Read(directory_.ResultPath(3)), ::testing::EndsWith("line\n"));
}

TEST_F(AccountsTest, AStepIsNotRootWhileItsRanksExecute) {
  MakePipe();
  ASSERT_EQ(chmod(pipe_.c_str(), 0666), 0);
  run_.Trainer(absl::StrCat(kAwaitStep,
                            "grep -E '^(Uid|Gid|Cap...|NoNewPrivs):' /proc/$PPID/status\n"
                            "read x < $DATA/train/a.bin; read x < ",
                            pipe_));
  const ProcessId step = Start();
  while (!ReadTouch().ok()) {
  }
  const UniqueFd seen(open(pipe_.c_str(), O_WRONLY | O_CLOEXEC));  // lets the trainer end
  ASSERT_EQ(write(seen.get(), "\n", 1), 1);

  EXPECT_EQ(Finish(step).code, 0) << Read(OutputPath(0));

  const std::string status = Read(OutputPath(0));
  const auto daemon = *FindStepUser(run_.worker, *FindRunUser(run_.worker));
  const auto four_times = [](const char* name, unsigned id) {
    return absl::StrFormat("%s:\t%d\t%d\t%d\t%d\n", name, id, id, id, id);
  };
  EXPECT_THAT(
      status,
      AllOf(HasSubstr(four_times("Uid", daemon->uid)), HasSubstr(four_times("Gid", daemon->gid)),
            HasSubstr("CapPrm:\t0000000000000020\n"),  // KILL
            HasSubstr("CapBnd:\t0000000000000000\n"), HasSubstr("CapAmb:\t0000000000000000\n"),
            HasSubstr("NoNewPrivs:\t1\n")));
  const absl::StatusOr<Touch> touch = ReadTouch();
  ASSERT_THAT(touch, IsOk());
  EXPECT_EQ(touch->path, run_.dir.Path("dataset/train/a.bin"));
  EXPECT_EQ(touch->is_attributed, touch->mechanism == "fanotify") << "as a step that is root";
  EXPECT_THAT(CodesOf(*touch), Not(Contains("W-TRAINER-ROOT")));
  EXPECT_TRUE(touch->gate.has_value()) << "closed by a step that is root until ranks have started";
}

TEST_F(AccountsTest, AStepThatIsNotRootStillEndsItsRanks) {
  MakePipe();
  ASSERT_EQ(chmod(pipe_.c_str(), 0666), 0);
  run_.Trainer(
      absl::StrCat(kAwaitStep, "trap '' TERM; echo x > ", pipe_, "; while :; do sleep 0.05; done"));
  const ProcessId step = Start();
  AwaitTrainer();

  ASSERT_THAT(StopStepProcess(directory_), IsOk());

  EXPECT_EQ(Finish(step).code, static_cast<int>(ExitCode::kTerminated));
}

TEST_F(AccountsTest, StagedSamplesAreGoneWithTheRun) {
  run_.spec.mutable_dataset()->set_is_staged(true);
  run_.Trainer(absl::StrCat(kAwaitStep, "cp $DATA/train/a.bin $STAGE/train/a.bin; echo $STAGE"));

  EXPECT_EQ(Run().code, 0) << Read(OutputPath(0));

  const std::string stage(absl::StripAsciiWhitespace(Read(OutputPath(0))));
  EXPECT_TRUE(!FileExists(stage) || std::filesystem::is_empty(stage)) << stage;
}

// The agent, which is root, sends what it finds there to whoever may read the run.
TEST_F(AccountsTest, ALinkInPlaceOfARecordIsNotFollowed) {
  EXPECT_EQ(Run().code, 0);
  const std::string secret = run_.dir.Path("secret.json");
  ASSERT_THAT(WriteFileAtomic(secret, "{\"path\": \"x\"}"), IsOk());
  ASSERT_EQ(symlink(secret.c_str(), directory_.TouchPath().c_str()), 0);
  EXPECT_THAT(directory_.ReadTouch(directory_.TouchPath()), Not(IsOk()));
}

TEST_F(StepTest, SecretsAreNotInTheFilesOfTheRun) {
  run_.worker.set_enrolment_token("assay_secret");
  EXPECT_EQ(Run().code, 0);
  EXPECT_THAT(Read(directory_.WorkerPath()), Not(HasSubstr("assay_secret")));
}

}  // namespace
}  // namespace assay::agent
