#include "common/rules/programs.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Program Good() {
  return {.division = "open",
          .command = {"python3", "${ASSAY_CODE}/train.py", "--rank=${ASSAY_RANK}", "$HOME"},
          .launcher = "per-rank",
          .log = "file",
          .env = {{"OPENBLAS_NUM_THREADS", "1"}},
          .collect = {"weights_*.npy", "figures/*.png"},
          .has_source = true,
          .source_digest = std::string(64, 'a'),
          .source_bytes = 10240};
}

std::vector<std::string> Ids(const Program& program) {
  std::vector<std::string> ids;
  for (const Finding& finding : CheckProgram(program))
    ids.push_back(finding.rule_id);
  return ids;
}

TEST(ProgramsTest, AGoodProgramHasNoFinding) {
  EXPECT_THAT(Ids(Good()), IsEmpty());
}

TEST(ProgramsTest, EachMistakeHasItsRule) {
  struct Case {
    const char* rule;
    void (*spoil)(Program*);
  };
  for (const Case& c : {
           Case{"R-WRK-001", [](Program* p) { p->command.clear(); }},
           Case{"R-WRK-001", [](Program* p) { p->command[0] = ""; }},
           Case{"R-WRK-001", [](Program* p) { p->command[1] = std::string("a\0b", 3); }},
           Case{"R-WRK-002", [](Program* p) { p->launcher = "per-core"; }},
           Case{"R-WRK-003", [](Program* p) { p->env["ASSAY_SEED"] = "1"; }},
           Case{"R-WRK-003", [](Program* p) { p->env["SLURM_NTASKS"] = "1"; }},
           Case{"R-WRK-003", [](Program* p) { p->env["LD_PRELOAD"] = "/tmp/x.so"; }},
           Case{"R-WRK-003", [](Program* p) { p->env["A=B"] = "1"; }},
           Case{"R-WRK-004", [](Program* p) { p->command.emplace_back("${ASSAY_RANKS}"); }},
           Case{"R-WRK-004", [](Program* p) { p->command.emplace_back("${ASSAY_RANK"); }},
           Case{"R-WRK-004", [](Program* p) { p->launcher = "per-node"; }},  // it has no rank
           Case{"R-WRK-005", [](Program* p) { p->log = "syslog"; }},
           Case{"R-WRK-006", [](Program* p) { p->collect = {"../../etc/passwd"}; }},
           Case{"R-WRK-006", [](Program* p) { p->collect = {"/etc/passwd"}; }},
           Case{"R-WRK-007", [](Program* p) { p->stop_grace_s = 121; }},
           Case{"R-WRK-008", [](Program* p) { p->memory_mib = -1; }},
           Case{"R-WRK-009", [](Program* p) { p->source_bytes = (64 << 20) + 1; }},
           Case{"R-WRK-009", [](Program* p) { p->source_digest = "../x"; }},
           Case{"R-WRK-012",
                [](Program* p) {
                  p->image_path = "train.sqsh";
                  p->image_digest = p->source_digest;
                }},
           Case{"R-WRK-012", [](Program* p) { p->image_path = "/shared/train.sqsh"; }},
       }) {
    Program program = Good();
    c.spoil(&program);
    EXPECT_THAT(Ids(program), ElementsAre(c.rule));
  }
}

TEST(ProgramsTest, LaunchersOfTheSiteStartProcessesThatAreRanks) {
  for (const char* launcher : {"srun", "mpirun"}) {
    Program program = Good();
    program.launcher = launcher;
    program.command.emplace_back("${ASSAY_RANK}");
    EXPECT_THAT(Ids(program), IsEmpty());
  }
  EXPECT_EQ(SrunWithoutSlurm("local").rule_id, "R-WRK-011");
}

TEST(ProgramsTest, TheClosedDivisionWantsASourceFromACleanCommit) {
  Program program = Good();
  program.division = "closed";
  EXPECT_THAT(Ids(program), ElementsAre("R-WRK-010"));  // of no repository
  program.git_commit = "0123456789abcdef";
  EXPECT_THAT(Ids(program), IsEmpty());
  program.is_modified = true;
  EXPECT_THAT(Ids(program), ElementsAre("R-WRK-010"));
  program.has_source = false;
  EXPECT_THAT(Ids(program), ElementsAre("R-WRK-010"));
}

TEST(ProgramsTest, AssaysOwnTrainerTrainsWhatItKnows) {
  EXPECT_THAT(CheckNativeTrainer("deepcam"), ::testing::IsEmpty());
  const std::vector<Finding> findings = CheckNativeTrainer("words");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule_id, "R-WRK-020");
}

}  // namespace
}  // namespace assay::rules
