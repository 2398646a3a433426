// Others' programs as real processes under a real step; the programs are small shell scripts.

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "common/process.h"
#include "common/program_contract.h"
#include "common/rules/program_log.h"
#include "common/sha256.h"
#include "common/source/source_archive.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/step_fixture.h"

namespace assay::agent {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;

constexpr int kProgram = static_cast<int>(ExitCode::kProgram);

class ProgramTest : public StepFixture {
 protected:
  ProgramTest() {
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
log run_start >> $ASSAY_LOG; sleep 0.3; log epoch_start >> $ASSAY_LOG; log run_stop >> $ASSAY_LOG)");

  EXPECT_EQ(Run().code, 0);

  const std::vector<rules::Arrival> arrivals = rules::ReadArrivals(Read(directory_.ArrivalsPath()));
  ASSERT_EQ(arrivals.size(), 2u) << Read(directory_.ResultPath(3));
  EXPECT_EQ(arrivals[0].record.key, "run_start");
  EXPECT_EQ(arrivals[0].record.line, 2);  // behind cache_clear
  EXPECT_EQ(arrivals[1].record.time_ms, 1000);
  EXPECT_GE(rules::RunMsByArrival(arrivals).value_or(0), 300);
  EXPECT_GT(arrivals[1].wall_us, 1'000'000'000'000'000);
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

}  // namespace
}  // namespace assay::agent
