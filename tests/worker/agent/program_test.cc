// Others' programs as real processes under a real step; the programs are small shell scripts.

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/exit_code.h"
#include "common/process.h"
#include "common/program_contract.h"
#include "common/rules/arrivals.h"
#include "common/rules/witnessed_time.h"
#include "common/sha256.h"
#include "common/source/source_archive.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/step_fixture.h"
#include "worker/agent/account.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;

constexpr int kProgram = static_cast<int>(ExitCode::kProgram);

class ProgramTest : public StepFixture {
 protected:
  ProgramTest() {
    run_.worker.set_isolation(v1::WorkerConfig::NONE);
    run_.spec.mutable_command()->set_launcher(kPerRank);
    run_.spec.mutable_command()->set_stop_grace_s(1);
    run_.spec.set_submission("submissions/e-1");
    run_.spec.set_organization("Example University");
    run_.spec.add_hosts("127.0.0.1");
    run_.spec.set_program_port(12345);
    setenv("SECRET_OF_THE_AGENT", "x", 1);
  }

  void Script(const std::string& text) {
    v1::CommandWorkload* const command = run_.spec.mutable_command();
    command->clear_command();
    for (const char* word : {"sh", "-c"})
      command->add_command(word);
    command->add_command(text);
  }
  // A source of one file, as the agent would have fetched it.
  void Source(const std::string& name, const std::string& text) {
    CHECK_OK(MakeDirectories(run_.dir.Path("source")));
    CHECK_OK(WriteFileAtomic(run_.dir.Path("source/" + name), text));
    const std::string archive = *PackSource(run_.dir.Path("source"));
    CHECK_OK(MakeDirectories(directory_.path()));
    CHECK_OK(WriteFileAtomic(directory_.SourcePath(), archive));
    v1::SourceArchive* const source = run_.spec.mutable_command()->mutable_source();
    source->set_sha256(Sha256Hex(archive));
    source->set_size_bytes(static_cast<int64_t>(archive.size()));
  }
  std::string Read(const std::string& path) const { return ReadFile(path).value_or(""); }
  std::string Output(const std::string& name = "program_0.out") const {
    return Read(directory_.Path(name));
  }
  std::set<std::string> Variables() const {
    std::set<std::string> names;
    for (const absl::string_view line : absl::StrSplit(Output(), '\n', absl::SkipEmpty()))
      names.emplace(line.substr(0, line.find('=')));
    return names;
  }
};

TEST_F(ProgramTest, HasTheVariablesOfTheContractAndNothingElse) {
  run_.spec.mutable_command()->clear_command();
  run_.spec.mutable_command()->add_command("env");
  (*run_.spec.mutable_command()->mutable_env())["MY_OWN"] = "1";
  (*run_.worker.mutable_trainer_environment())["OF_THE_OPERATOR"] = "x";
  (*run_.worker.mutable_trainer_environment())["CUDA_VISIBLE_DEVICES"] = "3";

  EXPECT_EQ(Run(), (StepExit{0, "finished"}));

  std::set<std::string> expected = {"PATH",
                                    "HOME",
                                    "TMPDIR",
                                    "MASTER_ADDR",
                                    "MASTER_PORT",
                                    "RANK",
                                    "LOCAL_RANK",
                                    "WORLD_SIZE",
                                    "OMP_NUM_THREADS",
                                    "MY_OWN",
                                    "PYTHONUNBUFFERED",
                                    "CUDA_VISIBLE_DEVICES"};
  for (const ContractVariable& variable : kContractVariables)
    expected.insert(variable.name);
  EXPECT_EQ(Variables(), expected) << Output();
}

TEST_F(ProgramTest, APerNodeProgramIsOneProcessWithoutARank) {
  run_.spec.set_ranks_per_node(2);
  run_.spec.mutable_command()->set_launcher(kPerNode);
  Script("env | grep -c RANK= ; echo world $ASSAY_WORLD_SIZE of $ASSAY_RANKS_PER_NODE each");

  EXPECT_EQ(Run().code, 0);

  EXPECT_EQ(Output("program_node_0.out"), "1\nworld 2 of 2 each\n");  // ASSAY_NODE_RANK
  EXPECT_FALSE(FileExists(directory_.Path("program_0.out")));
}

TEST_F(ProgramTest, VariablesAreReplacedInTheCommandAndNowhereElse) {
  run_.spec.mutable_command()->add_command("echo");
  run_.spec.mutable_command()->add_command(
      "run ${ASSAY_RUN} of ${ASSAY_ORGANIZATION} $HOME ${HOME}");

  EXPECT_EQ(Run().code, 0);

  EXPECT_EQ(Output(), "run r-1 of Example University $HOME ${HOME}\n");
}

TEST_F(ProgramTest, FindsItsSourceItsFoldersAndItsHyperparameters) {
  Source("hello.sh", "echo hello from the source\n");
  v1::Hyperparameter* const parameter = run_.spec.add_hyperparameters();
  parameter->set_key("global_batch_size");
  parameter->set_json_value("16");
  Script(
      "sh $ASSAY_CODE/hello.sh; pwd; cat $ASSAY_HYPERPARAMETERS $ASSAY_HOSTFILE; "
      "touch $TMPDIR/a $HOME/b; echo ':::MLLOG {}' >> $ASSAY_LOG; stat -c %a $ASSAY_CODE/hello.sh");

  EXPECT_EQ(Run().code, 0);

  EXPECT_EQ(Output(), absl::StrCat("hello from the source\n", directory_.RanksPath(), "/output\n",
                                   "{\n  \"global_batch_size\": 16\n}\n127.0.0.1\n444\n"));
  EXPECT_THAT(Read(directory_.ResultPath(3)), HasSubstr("cache_clear"));
  EXPECT_THAT(Read(directory_.ResultPath(3)), ::testing::EndsWith(":::MLLOG {}\n"));
}

TEST_F(ProgramTest, ArrivalsOfItsRecordsAreWitnessedWhateverTheyAreStamped) {
  Script(R"(log() {
  echo ':::MLLOG {"namespace": "", "time_ms": 1000, "event_type": "X", "key": "'$1'", "value": null, "metadata": {}}'
}
log run_start >> $ASSAY_LOG; sleep 0.5; log epoch_start >> $ASSAY_LOG; log run_stop >> $ASSAY_LOG)");

  EXPECT_EQ(Run().code, 0);

  const std::vector<rules::Arrival> arrivals = rules::ReadArrivals(Read(directory_.ArrivalsPath()));
  ASSERT_EQ(arrivals.size(), 3u) << Read(directory_.ResultPath(3));
  EXPECT_EQ(arrivals[0].record.key, "run_start");
  EXPECT_EQ(arrivals[0].record.line, 2);  // behind cache_clear
  EXPECT_FALSE(arrivals[1].record.TimesTheRun()) << "it is there for its stamp alone";
  EXPECT_EQ(arrivals[2].record.time_ms, 1000);
  const std::optional<rules::WitnessedTime> time = rules::TimeOf(arrivals, {});
  ASSERT_TRUE(time.has_value());
  EXPECT_GE(time->node_ms + time->error_ms, 500) << "by the stamps it would be none";
  EXPECT_GT(arrivals[2].wall_us, 1'000'000'000'000'000);
}

TEST_F(ProgramTest, OneThatInitialisesLongerThanTheRoundAllowsIsStopped) {
  run_.spec.set_init_limit_ms(200);
  Script(
      R"(echo ':::MLLOG {"namespace": "", "time_ms": 1, "event_type": "X", "key": "init_start", "value": null, "metadata": {}}' >> $ASSAY_LOG
exec sleep 1000)");

  const StepExit exit = Run();

  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kTerminated));
  EXPECT_THAT(exit.reason, AllOf(HasSubstr("no run_start has come within 200ms of init_start"),
                                 HasSubstr("R-TIM-022")));
}

TEST_F(ProgramTest, ASourceThatIsNotTheAnnouncedOneNeverRuns) {
  Source("hello.sh", "echo hello\n");
  run_.spec.mutable_command()->mutable_source()->set_sha256(std::string(64, '0'));
  Script("echo started");

  const StepExit exit = Run();

  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kNodeFailed));
  EXPECT_THAT(exit.reason, HasSubstr("digest"));
  EXPECT_EQ(Output(), "");
}

TEST_F(ProgramTest, ItsEndIsToldInWordsOfPrograms) {
  run_.spec.set_node_count(2);
  run_.spec.set_node_rank(1);
  run_.spec.add_hosts("127.0.0.1");
  Script("exit 3");
  EXPECT_EQ(Run(), (StepExit{kProgram, "the program ended with code 3 on node 1"}));

  ASSERT_THAT(RemoveTree(directory_.path()), IsOk());
  Script("kill -SEGV $$");
  EXPECT_EQ(Run(),
            (StepExit{128 + SIGSEGV,
                      "the program was killed by signal 11 (Segmentation fault) on node 1"}));
}

TEST_F(ProgramTest, TheFirstFailureEndsAllAndTheDeafAreKilled) {
  run_.spec.set_ranks_per_node(2);
  Script(
      "if [ $RANK = 1 ]; then until [ -e $ASSAY_OUTPUT/deaf ]; do sleep 0.01; done; exit 7; fi; "
      "trap '' TERM; touch $ASSAY_OUTPUT/deaf; while :; do sleep 1; done");

  EXPECT_EQ(Run(), (StepExit{kProgram, "the program ended with code 7 on node 0 (rank 1)"}));
}

TEST_F(ProgramTest, NothingStays) {
  // Twice away from its parent, in a session of its own, deaf; and another that nobody waits for.
  Script(
      "cd $ASSAY_OUTPUT; "
      "(setsid sh -c 'trap \"\" TERM; echo $$ > deaf; while :; do sleep 1; done' &); "
      "(setsid sh -c 'echo $$ > other; exec sleep 1000' &); "
      "until [ -s deaf ] && [ -s other ]; do sleep 0.01; done; exit 0");

  EXPECT_EQ(Run(), (StepExit{0, "finished"}));

  for (const char* name : {"deaf", "other"}) {
    pid_t pid = 0;
    const std::string text = Read(JoinPath(directory_.RanksPath(), absl::StrCat("output/", name)));
    ASSERT_TRUE(absl::SimpleAtoi(text, &pid)) << name;
    EXPECT_THAT(IdentifyProcess(pid), Not(IsOk())) << name;
  }
}

TEST_F(ProgramTest, AProgramThatCannotBeStartedSaysSo) {
  run_.spec.mutable_command()->add_command("/nowhere/train");

  const StepExit exit = Run();

  EXPECT_THAT(exit.reason, HasSubstr("cannot start /nowhere/train"));
}

// Tests of the sandbox, which a machine may be unable to make.
class SandboxTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (access("/usr/bin/bwrap", X_OK) != 0) GTEST_SKIP() << "bubblewrap is not installed";
    run_.worker.set_isolation(v1::WorkerConfig::NAMESPACES);
  }
};

TEST_F(ProgramTest, ALogThatIsPrintedBecomesTheRunsLogByteForByte) {
  run_.spec.mutable_command()->set_log(kLogIsOutput);
  const std::string start =
      R"(:::MLLOG {"namespace": "", "time_ms": 1, "event_type": "X", "key": "run_start", "value": null, "metadata": {}})";
  Script(absl::StrCat("echo hello; echo '", start,
                      "'; echo ' [0]: :::MLLOG {}  '; printf ':::MLLOG {}'; "
                      "echo ':::MLLOG of a file' >> $ASSAY_LOG"));

  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output();

  const std::string log = Read(directory_.ResultPath(3));
  EXPECT_THAT(log, HasSubstr("cache_clear"));
  EXPECT_EQ(log.substr(log.find('\n') + 1),
            absl::StrCat(start, "\n [0]: :::MLLOG {}  \n:::MLLOG {}\n"));
  EXPECT_THAT(Read(directory_.ArrivalsPath()), HasSubstr("run_start"));
  EXPECT_THAT(Output(), HasSubstr("hello\n"));
}

TEST_F(ProgramTest, ItsBillOfMaterialsIsThatOfAllRunsAlike) {
  Source("train.py", "the source");
  run_.spec.mutable_command()->mutable_source()->set_git_commit("c0ffee");
  (*run_.spec.mutable_command()->mutable_env())["MY_OWN"] = "1";
  Script("exit 0");

  EXPECT_EQ(Run().code, 0) << Output();

  const std::string text = Read(directory_.MaterialsPath());
  const auto bill = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(bill.is_object()) << text;
  EXPECT_EQ(bill["command"], nlohmann::json({"sh", "-c", "exit 0"}));
  EXPECT_EQ(bill["env"], nlohmann::json({{"MY_OWN", "1"}}));
  EXPECT_EQ(bill["source"]["sha256"], run_.spec.command().source().sha256());
  EXPECT_EQ(bill["source"]["git_commit"], "c0ffee");
  EXPECT_EQ(bill["isolation"], "none");
  EXPECT_THAT(text, Not(AnyOf(HasSubstr("r-1"), HasSubstr(run_.dir.Path("")))));
}

TEST_F(SandboxTest, AProgramSeesItsRunTheDatasetAndTheSystemAlone) {
  const std::string key = run_.dir.Path("data/key.pem");
  CHECK_OK(WriteFileAtomic(key, "secret"));
  Source("train.py", "the source");
  Script(absl::StrCat(
      "cat ", key,
      " 2>/dev/null && echo key; "
      "echo x 2>/dev/null > $ASSAY_DATASET/train/a.bin && echo dataset written; "
      "echo x 2>/dev/null > $ASSAY_CODE/train.py && echo source written; "
      "kill -0 ",
      getpid(),
      " 2>/dev/null && echo processes; "
      "cat /proc/1/environ 2>/dev/null | grep -aq SECRET && echo environment; "
      "cat $ASSAY_DATASET/train/a.bin $ASSAY_CODE/train.py; echo; "
      "echo of the program > $ASSAY_OUTPUT/made; [ $(ls /proc | grep -c '^[0-9]') -lt 9 ] && echo "
      "few; "
      "echo '{}' >> $ASSAY_LOG; touch /tmp/private; pwd; grep CapEff /proc/self/status"));

  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output();

  EXPECT_EQ(Output(),
            absl::StrCat("trainthe source\n",
                         "few\n",  // assay-hold, the shell and what it starts
                         directory_.RanksPath(), "/output\n", "CapEff:\t0000000000000000\n"));
  EXPECT_EQ(Read(directory_.RanksPath() + "/output/made"), "of the program\n");
  EXPECT_THAT(Read(directory_.ResultPath(3)), HasSubstr("{}"));
  EXPECT_FALSE(FileExists("/tmp/private"));
}

TEST_F(SandboxTest, TheBillSaysSo) {
  Script("exit 0");
  EXPECT_EQ(Run().code, 0) << Output();
  EXPECT_THAT(Read(directory_.MaterialsPath()), HasSubstr("\"isolation\": \"namespaces\""));
}

TEST_F(SandboxTest, AnAccountOfTheirOwnHasOneToo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can choose accounts";
  UseAccounts();
  Script(
      "id -un; cat $ASSAY_DATASET/train/a.bin; echo; echo x > made && cat made; "
      "echo line >> $ASSAY_LOG && echo logged");

  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output();
  EXPECT_EQ(Output(), "nobody\ntrain\nx\nlogged\n") << Read(directory_.Path("sandbox.log"));
}

TEST_F(SandboxTest, ItsRanksShareMemoryAndSeeEachOther) {
  run_.spec.set_ranks_per_node(2);
  Script(
      "if [ $ASSAY_RANK = 0 ]; then echo $$ > /dev/shm/first; "
      "while [ ! -e /dev/shm/second ]; do sleep 0.01; done; "
      "else while [ ! -s /dev/shm/first ]; do sleep 0.01; done; "
      "kill -0 $(cat /dev/shm/first) && echo seen; touch /dev/shm/second; fi");

  EXPECT_EQ(Run(), (StepExit{0, "finished"})) << Output();
  EXPECT_EQ(Output("program_1.out"), "seen\n");
}

TEST_F(SandboxTest, CodesSignalsAndTheGraceAreAsWithoutIt) {
  Script("exit 3");
  EXPECT_EQ(Run(), (StepExit{kProgram, "the program ended with code 3 on node 0"}));
}

TEST_F(SandboxTest, ASignalIsTold) {
  Script("kill -SEGV $$");
  EXPECT_THAT(Run().reason, HasSubstr("killed by signal 11"));
}

TEST_F(SandboxTest, ItMayEndOrderlyWhenItIsStopped) {
  Script(
      "trap 'echo asked; exit 0' TERM; echo ready > $ASSAY_OUTPUT/ready; "
      "while :; do sleep 0.01; done");
  const ProcessId step = Start();
  while (!FileExists(directory_.RanksPath() + "/output/ready"))
    ASSERT_TRUE(IsRunning(step)) << Output();
  CHECK_OK(SignalGroup(step, SIGTERM));
  Finish(step);
  EXPECT_THAT(Output(), HasSubstr("asked\n"));
}

TEST_F(SandboxTest, NothingStays) {
  Script(
      "setsid sh -c 'sleep 1000 & echo $! > /dev/null' & sleep 1000 & "
      "readlink /proc/self/ns/pid; exit 0");
  EXPECT_EQ(Run().code, 0) << Output();
  // Nobody is left in that namespace.
  const std::string name(absl::StripAsciiWhitespace(Output()));
  ASSERT_THAT(name, HasSubstr("pid:["));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error))
    EXPECT_NE(std::filesystem::read_symlink(entry.path() / "ns/pid", error).string(), name)
        << entry.path();
}

TEST_F(SandboxTest, TheFirstTouchInsideIsSeen) {
  Script("cat $ASSAY_DATASET/train/a.bin; sleep 0.2");
  EXPECT_EQ(Run().code, 0) << Output();
  EXPECT_TRUE(FileExists(directory_.TouchPath()) || FileExists(directory_.ObservedTouchPath()));
}

TEST_F(SandboxTest, SoftwareOfTheSiteIsSeenWhereTheOperatorNamesIt) {
  CHECK_OK(MakeDirectories(run_.dir.Path("site/bin")));
  CHECK_OK(WriteFileAtomic(run_.dir.Path("site/bin/tool"), "#!/bin/sh\necho of the site\n", 0755));
  run_.spec.mutable_command()->clear_command();
  run_.spec.mutable_command()->add_command(run_.dir.Path("site/bin/tool"));
  run_.worker.add_software_directories(run_.dir.Path("site"));
  EXPECT_EQ(Run().code, 0) << Output();
  EXPECT_EQ(Output(), "of the site\n");
}

TEST_F(SandboxTest, WhatIsTheAgentsIsHiddenWhereverItLies) {
  CHECK_OK(WriteFileAtomic(run_.dir.Path("data/key.pem"), "secret"));
  run_.worker.add_software_directories(run_.dir.Path("."));
  Script(absl::StrCat("cat ", run_.dir.Path("trainer.sh"), " > /dev/null && echo software; cat ",
                      run_.dir.Path("data/key.pem"), " 2> /dev/null; echo x > made && cat made"));
  EXPECT_EQ(Run().code, 0) << Output();
  EXPECT_EQ(Output(), "software\nx\n");
}

TEST_F(SandboxTest, WithoutNamespacesAProgramDoesNotStartWhereTheyAreDemanded) {
  run_.worker.add_software_directories("/no/such/folder");
  Script("echo started");
  const StepExit exit = Run();
  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kNodeFailed));
  EXPECT_THAT(exit.reason, HasSubstr("/no/such/folder"));
  EXPECT_EQ(Output(), "");
}

}  // namespace
}  // namespace assay::agent
