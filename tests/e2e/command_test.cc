// Somebody else's program under the service: deploy/examples/python on two nodes, and programs that
// cheat or fail, each with the outcome that a user sees.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/e2e/official_package.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::Not;

// The example as a user copies it; `program` is the text of a file that is put beside train.py and
// started in its place. Returns the submission file's path.
struct Submission {
  std::string example = "numpy";  // or pytorch
  std::string round = "hpc-3.0.0";
  std::string dataset = "beacons";
  int nodes = 2;
  std::string program;
  std::string workload;  // more lines of [workload]
};

std::string WriteExample(const Site& site, const std::string& python, const std::string& name,
                         const Submission& wanted) {
  const std::string folder = site.Path(name);
  std::filesystem::copy(JoinPath(EXAMPLES, "python"), folder,
                        std::filesystem::copy_options::recursive);
  if (!wanted.program.empty()) WriteFile(JoinPath(folder, "train/program.py"), wanted.program);
  const std::string file = JoinPath(folder, absl::StrCat("cosmoflow-", wanted.example, ".toml"));
  const std::string text = ReadFile(file).value_or("");
  WriteFile(
      file,
      absl::StrReplaceAll(
          text, {{"\"hpc-3.0.0\"", absl::StrCat("\"", wanted.round, "\"")},
                 {"\"beacons\"", absl::StrCat("\"", wanted.dataset, "\"")},
                 {"nodes        = 2", absl::StrCat("nodes = ", wanted.nodes, "\nepochs_max = 60")},
                 {"\"python3\"", absl::StrCat("\"", python, "\"")},
                 {"/train.py", wanted.program.empty() ? "/train.py" : "/program.py"},
                 {"[hyperparameters]",
                  absl::StrCat(
                      wanted.workload, "\n[hyperparameters]\n",
                      wanted.round == kRound ? "cube_edge = 32\nbase_filter_count = 4\n" : "")}}));
  return file;
}

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    python_ = ProvideOfficialChecker(&why_not);
    if (python_.empty()) GTEST_SKIP() << why_not;
    coordinator_.emplace(&site_);
    ProvideBeacons(site_, "beacons", 256, 64);
  }

  // Submits, waits for the end of the entry's first run, and lets the others go.
  Json FirstRun(const std::string& name, const Submission& wanted) {
    const Json run = FirstOfAll(name, wanted);
    site_.Assay({"cancel", "@last", "--reason", "one run is enough"});
    return run;
  }
  Json FirstOfAll(const std::string& name, const Submission& wanted) {
    const Outcome submitted = site_.Assay({"submit", WriteExample(site_, python_, name, wanted)});
    EXPECT_EQ(submitted.exit_code, 0) << submitted.Text();
    const Json entry = site_.AssayJson({"entry", "show", "@last"});
    const std::string run = entry["runs"][0];
    site_.Assay({"logs", run, "--follow", "--timeout", "3m"});
    return site_.AssayJson({"run", "show", run});
  }
  // Plans, submits and exports, and looks at the evidence of the first run.
  void ExpectValid(const std::string& file) {
    const Outcome plan = site_.Assay({"plan", file});
    EXPECT_EQ(plan.exit_code, 0) << plan.Text();
    const Outcome submitted = site_.Assay({"submit", file, "--wait"});
    ASSERT_EQ(submitted.exit_code, 0) << submitted.Text() << WhatProgramSaid();
    const Json entry = site_.AssayJson({"entry", "show", "@last"});
    EXPECT_EQ(entry["state"], "valid") << entry;
    const Json run = site_.AssayJson({"run", "show", "r-1"});
    EXPECT_EQ(run["converged"], true) << run;
    EXPECT_TRUE(run.contains("first_touch_us") || run.contains("observed_touch_us")) << run;
    EXPECT_NEAR(run["arrival_seconds"].get<double>(), run["seconds"].get<double>(), 1) << run;
    EXPECT_THAT(Rules(run), Each(AllOf(Not(HasSubstr("R-WRK")), Ne("R-TIM-031"), Ne("R-TIM-034"))));
    const Outcome logs = site_.Assay({"logs", "r-1", "--follow"});
    EXPECT_THAT(logs.out, AllOf(HasSubstr("cache_clear"), HasSubstr("eval_error")));
    WriteFile(site_.Path("result_1.txt"), logs.out);
    const Outcome checked =
        site_.Assay({"rules", "check", "--round", "hpc-3.0.0", site_.Path("result_1.txt")});
    EXPECT_EQ(checked.exit_code, 0) << checked.Text();
    const Outcome exported = site_.Assay({"entry", "export", "@last", "package"});
    ASSERT_EQ(exported.exit_code, 0) << exported.Text();
    const absl::StatusOr<std::vector<std::string>> names = ListDirectory(site_.Path("package"));
    ASSERT_THAT(names, IsOk());
    const std::string package = JoinPath(site_.Path("package"), names->front());
    EXPECT_TRUE(BothAccept(site_, python_, package));
    ExpectSameAgain(JoinPath(package, "benchmarks/cosmoflow/this-host/submission.toml"), entry);
  }
  // A package holds all that makes the entry again.
  void ExpectSameAgain(const std::string& file, const Json& entry) {
    const Outcome submitted = site_.Assay({"submit", file});
    ASSERT_EQ(submitted.exit_code, 0) << submitted.Text() << ReadFile(file).value_or("");
    const Json again = site_.AssayJson({"entry", "show", "@last"});
    EXPECT_EQ(again["workload"], entry["workload"]);
    EXPECT_EQ(again["hyperparameters"], entry["hyperparameters"]);
    site_.Assay({"cancel", "@last", "--reason", "it was made again"});
  }
  // What the first rank of the entry's first run has printed.
  std::string WhatProgramSaid() const {
    return absl::StrCat(site_.Assay({"run", "files", "r-1"}).out,
                        site_.Assay({"run", "files", "r-1", "program_0.out"}).out,
                        site_.Assay({"run", "files", "r-1", "program_node_0.out"}).out);
  }
  std::vector<std::string> Rules(const Json& run) {
    std::vector<std::string> rules;
    for (const Json& finding : run.value("findings", Json::array()))
      rules.push_back(finding["rule"]);
    return rules;
  }

  Site site_;
  std::string python_;
  std::optional<Coordinator> coordinator_;
};

TEST_F(CommandTest, ANumpyProgramOnTwoNodesEndsValidWithWitnessedTouches) {
  ExpectValid(WriteExample(site_, python_, "example", {}));

  EXPECT_EQ(site_.AssayJson({"entry", "show", "e-1"})["workload"]["launcher"], "per-rank");
}

// PyTorch is Debian's (deploy/packages.txt), mlperf-logging PyPI's.
TEST_F(CommandTest, APyTorchProgramUnderTorchrunOnTwoNodesEndsValidWithWitnessedTouches) {
  const std::string python = "/usr/bin/python3";
  if (site_.RunProgram({python, "-c", "import torch.distributed.run"}).exit_code != 0)
    GTEST_SKIP() << "PyTorch is not installed: python3-torch of deploy/packages.txt";
  const Outcome packages = site_.RunProgram(
      {python_, "-c", "import mlperf_logging as m; print(*m.__path__[0].rsplit('/', 1)[:1])"});
  const std::string path(absl::StripAsciiWhitespace(packages.out));

  ExpectValid(WriteExample(
      site_, python, "ddp",
      {.example = "pytorch", .workload = absl::StrCat("env = { PYTHONPATH = \"", path, "\" }")}));

  EXPECT_EQ(site_.AssayJson({"entry", "show", "e-1"})["workload"]["launcher"], "per-node");
}

TEST_F(CommandTest, DataThatIsTouchedBeforeTheClockRunsIsFound) {
  const Json run = FirstRun("early", {.round = kRound, .nodes = 1, .program = R"(
import pathlib, train
init = train.Log.identity
def identity(self, hyperparameters):
    init(self, hyperparameters)
    next(pathlib.Path(train.variable("DATASET"), "train").glob("*.tfrecord")).read_bytes()
train.Log.identity = identity
train.main()
)"});

  EXPECT_EQ(run["state"], "succeeded") << run;
  EXPECT_EQ(run["compliant"], false) << run;
  EXPECT_THAT(Rules(run), Contains("R-TIM-001")) << run;
}

TEST_F(CommandTest, ARunStopThatIsBackDatedIsFoundWithBothNumbers) {
  const Json run = FirstRun("backdated", {.round = kRound, .nodes = 1, .program = R"(
import time, train
write = train.Log.write
def back_dated(self, how, key, value=None, **metadata):
    if key != "run_stop":
        return write(self, how, key, value, **metadata)
    self.logger.end(key=key, metadata=metadata, time_ms=int(time.time() * 1000) - 10000)
train.Log.write = back_dated
train.main()
)"});

  EXPECT_EQ(run["state"], "succeeded") << run;
  EXPECT_EQ(run["compliant"], false) << run;
  ASSERT_TRUE(run.contains("arrival_seconds")) << run;
  EXPECT_NEAR(run["arrival_seconds"].get<double>() - run["seconds"].get<double>(), 10, 1) << run;
  EXPECT_THAT(Rules(run), Contains("R-TIM-031")) << run;
  EXPECT_THAT(site_.Assay({"run", "show", run["id"]}).out, HasSubstr("arrival_seconds"));
}

TEST_F(CommandTest, WhatIsLoggedMustBeWhatWasGiven) {
  const Json run = FirstRun("liar", {.round = kRound, .nodes = 1, .program = R"(
import train
event = train.Log.event
lies = {"submission_platform": "another", "seed": 1, "number_of_nodes": 3, "train_samples": 7,
        "global_batch_size": 32}
train.Log.event = lambda self, key, value, **metadata: event(
    self, key, lies.get(key, value), **metadata)
train.main()
)"});

  EXPECT_EQ(run["compliant"], false) << run;
  EXPECT_THAT(Rules(run), ::testing::IsSupersetOf(
                              {"R-WRK-021", "R-WRK-022", "R-WRK-023", "R-WRK-024", "R-WRK-025"}))
      << run;
}

TEST_F(CommandTest, AQualityThatIsNoNumberConvergesToNothing) {
  const Json run = FirstRun("nan", {.round = kRound, .nodes = 1, .program = R"(
import train
train.Model.error = lambda self, inputs, targets: float("nan")
train.main()
)"});

  EXPECT_EQ(run["converged"], false) << run;
}

TEST_F(CommandTest, AProgramThatEndsWithACodeFailsTheRunOnAllNodes) {
  const Json run = FirstOfAll("code", {.round = kRound,
                                       .program = R"(
import os, signal, sys, time
if os.environ["ASSAY_NODE_RANK"] == "1":
    sys.exit(3)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(1000)
)",
                                       .workload = "stop_grace_s = 1"});

  EXPECT_EQ(run["state"], "failed") << run;
  EXPECT_EQ(run["exit_code"], 13) << run;
  EXPECT_THAT(run["state_reason"].get<std::string>(),
              HasSubstr("the program ended with code 3 on node 1"));
  site_.Assay({"wait", "@last"});
  EXPECT_EQ(site_.AssayJson({"entry", "show", "@last"})["state"], "invalid");
}

TEST_F(CommandTest, AProgramThatLogsNothingFailsTheCheck) {
  const Json run = FirstRun("silent", {.round = kRound, .nodes = 1, .program = "print('hello')"});

  EXPECT_EQ(run["state"], "succeeded") << run;
  EXPECT_EQ(run["compliant"], false) << run;
  EXPECT_EQ(run["converged"], false) << run;
}

TEST_F(CommandTest, NothingOfAProgramStaysOnTheNode) {
  const Json run = FirstRun("sleeper", {.round = kRound, .nodes = 1, .program = R"(
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("sleeper", os.getpid(), flush=True)
        time.sleep(1000)
    os._exit(0)
os.wait()
time.sleep(0.5)
)"});

  EXPECT_EQ(run["state"], "succeeded") << run;
  const Outcome sleepers =
      site_.RunProgram({"/bin/sh", "-c",
                        "for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $f "
                        "2>/dev/null | grep -q '^ASSAY_CODE=" +
                            site_.Path("") + "' && echo $f; done; exit 0"});
  EXPECT_EQ(sleepers.out, "");
}

TEST_F(CommandTest, PlanFindsMistakesWithTheirPlace) {
  const std::string file =
      WriteExample(site_, python_, "mistakes",
                   {.program = "pass", .workload = "stop_grace_s = 500\nlog = \"syslog\"\n"});
  const Outcome parsed = site_.Assay({"plan", file});
  EXPECT_EQ(parsed.exit_code, 2) << parsed.Text();
  EXPECT_THAT(parsed.err, HasSubstr("'stop_grace_s' must be a whole number from 1 to 120"));

  const std::string text = ReadFile(file).value_or("");
  WriteFile(file,
            absl::StrReplaceAll(text, {{"stop_grace_s = 500", ""}, {"per-rank", "per-core"}}));
  const Outcome planned = site_.Assay({"plan", file});
  EXPECT_EQ(planned.exit_code, 3) << planned.Text();
  EXPECT_THAT(planned.err, AllOf(HasSubstr("error R-WRK-002"), HasSubstr("error R-WRK-005")));

  WriteFile(file, absl::StrReplaceAll(text, {{"stop_grace_s = 500", ""},
                                             {"log = \"syslog\"", ""},
                                             {"\"open\"", "\"closed\""}}));
  EXPECT_THAT(site_.Assay({"plan", file}).err, HasSubstr("R-WRK-010"));
}

}  // namespace
}  // namespace assay::testing
