#include "cli/entry/submission_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/client/export.h"

namespace assay {
namespace {

using cli::ParseSubmissionFile;
using cli::SubmissionFile;
using ::testing::HasSubstr;

constexpr char kGood[] = R"(round = "hpc-3.0.0"
benchmark = "cosmoflow"
division = "closed"
organization = "Example"
system = "a"
dataset = "cosmo128"
nodes = 16
ranks_per_node = 2
runs = 10
replacements = 1
fleet = "gpu"
minutes_per_run = 40
run_timeout = "90m"

[hyperparameters]
global_batch_size = 64
opt_name = "sgd"
opt_base_learning_rate = 0.004
opt_learning_rate_decay_boundary_epochs = [16, 32]

[labels]
gpu = "a100"
)";

TEST(SubmissionFileTest, ReadsEveryKindOfValue) {
  const SubmissionFile file = ParseSubmissionFile(kGood, "x.toml");

  EXPECT_TRUE(file.problems.empty()) << FormatDiagnostic(file, file.problems[0]);
  EXPECT_EQ(file.spec.node_count(), 16);
  EXPECT_EQ(file.spec.replacement_count_max(), 1);
  EXPECT_EQ(file.spec.run_timeout().seconds(), 5400);
  EXPECT_EQ(file.spec.fleet(), "gpu");
  EXPECT_EQ(file.spec.minutes_per_run(), 40);
  EXPECT_EQ(file.spec.worker_labels().at("gpu"), "a100");
  std::map<std::string, std::string> values;
  for (const v1::Hyperparameter& parameter : file.spec.hyperparameters())
    values[parameter.key()] = parameter.json_value();
  EXPECT_EQ(values["global_batch_size"], "64");
  EXPECT_EQ(values["opt_name"], "\"sgd\"");
  EXPECT_EQ(values["opt_base_learning_rate"], "0.004");
  EXPECT_EQ(values["opt_learning_rate_decay_boundary_epochs"], "[16,32]");
}

TEST(SubmissionFileTest, ProblemsHavePlaceAndRemedy) {
  struct Case {
    const char* name;
    const char* line;  // put on line 8 of a good file
    const char* report;
  };
  const Case kCases[] = {
      {"typo", "rnaks_per_node = 2",
       "x.toml:8:1: error: unknown key 'rnaks_per_node'\n    8 | rnaks_per_node = 2\n      | ^\n"
       "  fix: write ranks_per_node\n"},
      {"misplaced", "opt_name = \"sgd\"", "move it below [hyperparameters]"},
      {"text for a number", "runs = \"ten\"",
       "x.toml:8:8: error: 'runs' must be a whole number from 0 to 1000000"},
      {"negative", "runs = -1", "x.toml:8:8: error: 'runs' must be a whole number"},
      {"number for a text", "backend = 1",
       "x.toml:8:11: error: 'backend' must be a text\n    8 | backend = 1\n"},
      {"empty text", "backend = \"\"", "'backend' must be a text"},
      {"table", "labels = 3", "'labels' must be a table"},
      {"lender", "borrowing = {from = \"LBNL\", own = \"e-7\"}",
       "x.toml:8:21: error: 'from' must be an entry's id"},
      {"no original", "borrowing = {from = \"e-12\"}", "x.toml:8:1: error: 'own' is missing"},
      {"timeout", "run_timeout = 5", "'run_timeout' must be a duration"},
      {"no flag", "allow_preemptible = \"yes\"",
       "x.toml:8:21: error: 'allow_preemptible' must be true or false"},
      {"no TOML", "runs = = 3", "x.toml:8:"},
  };
  for (const Case& c : kCases) {
    std::string text = kGood;
    const std::string old_line =
        "ranks_per_node = 2\nruns = 10\nreplacements = 1\nfleet = \"gpu\"\n"
        "minutes_per_run = 40\nrun_timeout = \"90m\"\n";
    text.replace(text.find(old_line), old_line.size(), std::string(c.line) + "\n");
    if (std::string(c.name) == "table") text = text.substr(0, text.find("[labels]"));
    const SubmissionFile file = ParseSubmissionFile(text, "x.toml");
    ASSERT_FALSE(file.problems.empty()) << c.name;
    EXPECT_THAT(FormatDiagnostic(file, file.problems[0]), HasSubstr(c.report)) << c.name;
  }
}

TEST(SubmissionFileTest, ReportsAllProblemsInOrder) {
  const SubmissionFile file = ParseSubmissionFile("nodes = \"x\"\nbogus = 1\n", "x.toml");

  std::vector<int> lines;
  for (const cli::Diagnostic& problem : file.problems)
    lines.push_back(problem.at.line);
  // Both lines, and the six required keys that are missing at the end.
  EXPECT_EQ(lines, (std::vector<int>{1, 2, 3, 3, 3, 3, 3, 3}));
}

TEST(SubmissionFileTest, FindingsAreMappedBackUnderTheirOwnNames) {
  const SubmissionFile file = ParseSubmissionFile(kGood, "x.toml");
  const std::pair<const char*, int> kKeys[] = {{"opt_name", 17},      {"node_count", 7},
                                               {"run_count", 9},      {"submission_division", 3},
                                               {"worker_labels", 21}, {"unheard_of", 0}};
  for (const auto& [key, line] : kKeys) {
    v1::Finding finding;
    finding.set_key(key);
    EXPECT_EQ(DiagnosticFor(file, finding).at.line, line) << key;
  }
}

TEST(SubmissionFileTest, ABorrowingNamesItsEntries) {
  const std::string text = std::string(kGood) + "\n[borrowing]\nfrom = \"e-12\"\nown = \"e-7\"\n";

  const SubmissionFile file = ParseSubmissionFile(text, "x.toml");

  EXPECT_TRUE(file.problems.empty()) << FormatDiagnostic(file, file.problems[0]);
  EXPECT_EQ(file.spec.borrowing().lender_entry(), "submissions/e-12");
  EXPECT_EQ(file.spec.borrowing().own_entry(), "submissions/e-7");
  v1::Finding finding;
  finding.set_rule("R-BOR-004");
  finding.set_key("lender_entry");
  finding.set_found("one of \"Example\"");
  EXPECT_THAT(FormatDiagnostic(file, DiagnosticFor(file, finding)),
              HasSubstr("x.toml:25:8: error R-BOR-004: borrowing.from = one of \"Example\"\n"
                        "   25 | from = \"e-12\"\n"));
}

TEST(SubmissionFileTest, ExportedFilesSubmitTheSameAgain) {
  SubmissionFile file = ParseSubmissionFile(kGood, "x.toml");
  file.spec.set_allow_preemptible(true);
  v1::Submission entry;
  entry.set_name("submissions/e-1");
  *entry.mutable_spec() = file.spec;
  entry.mutable_spec()->clear_run_timeout();

  const SubmissionFile again = ParseSubmissionFile(client::SubmissionToml(entry), "y.toml");

  EXPECT_TRUE(again.problems.empty()) << FormatDiagnostic(again, again.problems[0]);
  std::string before;
  std::string after;
  EXPECT_EQ(again.spec.hyperparameters_size(), file.spec.hyperparameters_size());
  EXPECT_EQ(again.spec.node_count(), 16);
  EXPECT_EQ(again.spec.fleet(), "gpu");
  EXPECT_TRUE(again.spec.allow_preemptible());
  EXPECT_EQ(again.spec.minutes_per_run(), 40);
  EXPECT_EQ(again.spec.worker_labels().at("gpu"), "a100");
}

TEST(SubmissionFileTest, AWorkloadIsReadWithThePlaceOfEachKey) {
  const std::string text = std::string(kGood) + R"(
[workload]
command = ["python3", "${ASSAY_CODE}/train.py"]
launcher = "per-node"
source = "train"
collect = ["*.npy"]
env = { A = "1", B = "2" }
stop_grace_s = 30
memory_mib = 4096
image = "/shared/train.sqsh"
)";
  const SubmissionFile file = ParseSubmissionFile(text, "x.toml");

  EXPECT_TRUE(file.problems.empty()) << FormatDiagnostic(file, file.problems[0]);
  const v1::CommandWorkload& program = file.spec.command();
  ASSERT_EQ(program.command_size(), 2);
  EXPECT_EQ(program.command(1), "${ASSAY_CODE}/train.py");
  EXPECT_EQ(program.launcher(), "per-node");
  EXPECT_EQ(program.env().at("B"), "2");
  EXPECT_EQ(program.collect(0), "*.npy");
  EXPECT_EQ(program.stop_grace_s(), 30);
  EXPECT_EQ(program.memory_mib(), 4096);
  EXPECT_EQ(program.image().path(), "/shared/train.sqsh");
  EXPECT_EQ(file.source_folder, "train");
  v1::Finding finding;
  finding.set_rule("R-WRK-002");
  finding.set_key("workload.launcher");
  EXPECT_EQ(DiagnosticFor(file, finding).at.line, 26);
}

TEST(SubmissionFileTest, MistakesInAWorkloadHaveTheirPlaceAndRemedy) {
  struct Case {
    const char* line;
    const char* report;
  };
  for (const Case& c :
       {Case{"command = \"python3 train.py\"", "x.toml:25:11: error: 'command' must be a list"},
        Case{"command = [1]", "x.toml:25:12: error: 'command' must be a list of texts"},
        Case{"comand = [\"a\"]", "write command"},
        Case{"launcher = \"per-rank\"", "'command' is missing"},
        Case{"command = [\"a\"]\nenv = { A = 1 }", "'env' must be a table of texts"},
        Case{"command = [\"a\"]\nstop_grace_s = 0", "from 1 to 120"}}) {
    const SubmissionFile file =
        ParseSubmissionFile(std::string(kGood) + "\n[workload]\n" + c.line + "\n", "x.toml");
    ASSERT_FALSE(file.problems.empty()) << c.line;
    std::string report;
    for (const auto& problem : file.problems)
      report += FormatDiagnostic(file, problem);
    EXPECT_THAT(report, HasSubstr(c.report));
  }
}

}  // namespace
}  // namespace assay
