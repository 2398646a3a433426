#include "tests/e2e/program_example.h"

#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/official_package.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::Not;

constexpr char kDebianPython[] = "/usr/bin/python3";

// What the first rank of the entry's first run has printed.
std::string WhatProgramSaid(const Site& site) {
  std::string text = site.Assay({"run", "files", "r-1"}).out;
  for (const char* file :
       {"program_0.out", "program_1.out", "program_node_0.out", "launcher.out", "step_0.log"})
    absl::StrAppend(&text, file, ":\n", site.Assay({"run", "files", "r-1", file}).out);
  return text;
}

// A package holds all that makes the entry again.
void ExpectSameAgain(const Site& site, const std::string& file, const Json& entry) {
  const Outcome submitted = site.Assay({"submit", file});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text() << ReadFile(file).value_or("");
  const Json again = site.AssayJson({"entry", "show", "@last"});
  EXPECT_EQ(again["workload"], entry["workload"]);
  EXPECT_EQ(again["hyperparameters"], entry["hyperparameters"]);
  site.Assay({"cancel", "@last", "--reason", "it was made again"});
}

}  // namespace

std::string WriteExample(const Site& site, const std::string& python, const std::string& name,
                         const Example& wanted) {
  const std::string folder = site.Path(name);
  std::filesystem::copy(JoinPath(EXAMPLES, "python"), folder,
                        std::filesystem::copy_options::recursive);
  if (!wanted.program.empty()) WriteFile(JoinPath(folder, "train/program.py"), wanted.program);
  const std::string file = JoinPath(folder, absl::StrCat("cosmoflow-", wanted.name, ".toml"));
  const std::string text = ReadFile(file).value_or("");
  WriteFile(
      file,
      absl::StrReplaceAll(
          text, {{"\"hpc-3.0.0\"", absl::StrCat("\"", wanted.round, "\"")},
                 {"\"beacons\"", absl::StrCat("\"", wanted.dataset, "\"")},
                 {"nodes        = 2",
                  absl::StrCat("nodes = ", wanted.nodes,
                               "\nepochs_max = 60\nranks_per_node = ", wanted.ranks_per_node)},
                 {"\"python3\"", absl::StrCat("\"", python, "\"")},
                 {"\"mpirun\" ",
                  absl::StrCat("\"", wanted.launcher.empty() ? "mpirun" : wanted.launcher, "\" ")},
                 {"/train_mpi.py", wanted.program.empty() ? "/train_mpi.py" : "/program.py"},
                 {"/train.py", wanted.program.empty() ? "/train.py" : "/program.py"},
                 {"[hyperparameters]",
                  absl::StrCat(
                      wanted.workload, "\n[hyperparameters]\n",
                      wanted.round == kRound ? "cube_edge = 32\nbase_filter_count = 4\n" : "")}}));
  return file;
}

std::string PackagesOf(const Site& site, const std::string& checker) {
  const Outcome packages = site.RunProgram(
      {checker, "-c", "import mlperf_logging as m; print(*m.__path__[0].rsplit('/', 1)[:1])"});
  return std::string(absl::StripAsciiWhitespace(packages.out));
}

bool HasDebianModule(const Site& site, const std::string& module) {
  return site.RunProgram({kDebianPython, "-c", absl::StrCat("import ", module)}).exit_code == 0;
}

std::string WriteDebianExample(const Site& site, const std::string& checker,
                               const std::string& name, Example wanted) {
  const std::string file = WriteExample(site, kDebianPython, name, wanted);
  const std::string env = absl::StrCat("PYTHONPATH = \"", PackagesOf(site, checker), "\"");
  const std::string text = ReadFile(file).value_or("");
  const std::string more =
      absl::StrReplaceAll(text, {{"env      = { ", absl::StrCat("env = { ", env, ", ")}});
  WriteFile(file, more != text
                      ? more
                      : absl::StrReplaceAll(
                            text, {{"[hyperparameters]",
                                    absl::StrCat("env = { ", env, " }\n[hyperparameters]")}}));
  return file;
}

void ExpectValidEntry(const Site& site, const std::string& checker, const std::string& file) {
  const Outcome plan = site.Assay({"plan", file});
  EXPECT_EQ(plan.exit_code, 0) << plan.Text();
  const Outcome submitted = site.Assay({"submit", file, "--wait"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text() << WhatProgramSaid(site);
  const Json entry = site.AssayJson({"entry", "show", "@last"});
  EXPECT_EQ(entry["state"], "valid") << entry;
  const Json run = site.AssayJson({"run", "show", "r-1"});
  EXPECT_EQ(run["converged"], true) << run;
  EXPECT_TRUE(run.contains("first_touch_us") || run.contains("observed_touch_us")) << run;
  EXPECT_NEAR(run["arrival_seconds"].get<double>(), run["seconds"].get<double>(), 1) << run;
  EXPECT_THAT(RulesOf(run), Each(AllOf(Not(HasSubstr("R-WRK")), Ne("R-TIM-031"), Ne("R-TIM-034"))));
  const Outcome logs = site.Assay({"logs", "r-1", "--follow"});
  EXPECT_THAT(logs.out, AllOf(HasSubstr("cache_clear"), HasSubstr("eval_error")));
  WriteFile(site.Path("result_1.txt"), logs.out);
  const Outcome checked =
      site.Assay({"rules", "check", "--round", "hpc-3.0.0", site.Path("result_1.txt")});
  EXPECT_EQ(checked.exit_code, 0) << checked.Text();
  const Outcome exported = site.Assay({"entry", "export", "@last", "package"});
  ASSERT_EQ(exported.exit_code, 0) << exported.Text();
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(site.Path("package"));
  ASSERT_THAT(names, IsOk());
  const std::string package = JoinPath(site.Path("package"), names->front());
  EXPECT_TRUE(BothAccept(site, checker, package));
  ExpectSameAgain(site, JoinPath(package, "benchmarks/cosmoflow/this-host/submission.toml"), entry);
}
std::vector<std::string> RulesOf(const Json& run) {
  std::vector<std::string> rules;
  for (const Json& finding : run.value("findings", Json::array()))
    rules.push_back(finding["rule"]);
  return rules;
}

}  // namespace assay::testing
