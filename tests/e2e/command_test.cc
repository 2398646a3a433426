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
#include "tests/e2e/program_example.h"
#include "tests/support/official_checker.h"
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

// With less time than any program needs.
constexpr char kHastyRound[] = R"([round]
name = "e2e-hasty"
base = "hpc-3.0.0"
label = "Round of the end-to-end tests: not an MLPerf result"
init_limit_s = 1

[benchmark]
name = "cosmoflow"
runs = 3
target = 0.3
)";

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    python_ = ProvideOfficialChecker(&why_not);
    if (python_.empty()) GTEST_SKIP() << why_not;
    WriteFile(site_.Path("share/assay/rounds/e2e-hasty.toml"), kHastyRound);
    coordinator_.emplace(&site_);
    ProvideBeacons(site_, "beacons", 256, 64);
  }

  // Submits, waits for the end of the entry's first run, and lets the others go.
  Json FirstRun(const std::string& name, const Example& wanted) {
    const Json run = FirstOfAll(name, wanted);
    site_.Assay({"cancel", "@last", "--reason", "one run is enough"});
    return run;
  }
  Json FirstOfAll(const std::string& name, const Example& wanted) {
    const Outcome submitted = site_.Assay({"submit", WriteExample(site_, python_, name, wanted)});
    EXPECT_EQ(submitted.exit_code, 0) << submitted.Text();
    const Json entry = site_.AssayJson({"entry", "show", "@last"});
    const std::string run = entry["runs"][0];
    site_.Assay({"logs", run, "--follow", "--timeout", "3m"});
    return site_.AssayJson({"run", "show", run});
  }
  Site site_;
  std::string python_;
  std::optional<Coordinator> coordinator_;
};

TEST_F(CommandTest, ANumpyProgramOnTwoNodesEndsValidWithWitnessedTouches) {
  ExpectValidEntry(site_, python_, WriteExample(site_, python_, "example", {}));

  EXPECT_EQ(site_.AssayJson({"entry", "show", "e-1"})["workload"]["launcher"], "per-rank");
}

// PyTorch is Debian's (deploy/packages.txt), mlperf-logging PyPI's.
TEST_F(CommandTest, APyTorchProgramUnderTorchrunOnTwoNodesEndsValidWithWitnessedTouches) {
  if (!HasDebianModule(site_, "torch.distributed.run"))
    GTEST_SKIP() << "PyTorch is not installed: python3-torch of deploy/packages.txt";

  ExpectValidEntry(site_, python_, WriteDebianExample(site_, python_, "ddp", {.name = "pytorch"}));

  EXPECT_EQ(site_.AssayJson({"entry", "show", "e-1"})["workload"]["launcher"], "per-node");
}

// Its image has numpy and mlperf-logging of its own, and no other Python is in sight.
TEST_F(CommandTest, AProgramInAnImageEndsValidAndAnotherImageFailsItsRuns) {
  if (geteuid() != 0) GTEST_SKIP() << "images are made by root (make_image.sh)";
  const std::string image = site_.Path("numpy.sqsh");
  const Outcome made = site_.RunProgram({"/usr/bin/env", absl::StrCat("PYTHON=", python_),
                                         JoinPath(EXAMPLES, "python/make_image.sh"), image});
  ASSERT_EQ(made.exit_code, 0) << made.Text();
  std::filesystem::permissions(site_.Path("."), std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  const std::string file =
      WriteExample(site_, "/usr/bin/python3", "example", {.workload = "image = \"../numpy.sqsh\""});

  ExpectValidEntry(site_, python_, file);

  const Json workload = site_.AssayJson({"entry", "show", "e-1"})["workload"];
  EXPECT_EQ(workload["image"]["path"], image);
  EXPECT_THAT(made.out, HasSubstr(workload["image"]["sha256"].get<std::string>()));
  const Json bill =
      Json::parse(site_.Assay({"run", "files", "r-1", "materials_1.json"}).out, nullptr, false);
  EXPECT_EQ(bill.value("image", Json())["sha256"], workload["image"]["sha256"]) << bill;
  const Json compared = site_.AssayJson({"compare", "r-1", "r-2", "--all"});
  bool is_found = false;
  for (const Json& row : compared["items"]) {
    if (row["field"] != "materials.image.sha256") continue;
    is_found = true;
    EXPECT_EQ(row["r-1"], workload["image"]["sha256"]);
    EXPECT_EQ(row["differs"], false);
  }
  EXPECT_TRUE(is_found) << compared;

  // The digest of what was there before.
  const Json failed =
      FirstRun("former", {.workload = absl::StrCat("image = \"../numpy.sqsh\"\nimage_sha256 = \"",
                                                   std::string(64, '0'), "\"")});
  EXPECT_EQ(failed["state"], "failed") << failed;
  EXPECT_THAT(failed.dump(), HasSubstr("numpy.sqsh has changed")) << failed;
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
  EXPECT_THAT(RulesOf(run), Contains("R-TIM-001")) << run;
}

// hpc-3.0.0 leaves staging off the clock, and wants the copies on durable storage, memory excluded.
TEST_F(CommandTest, StagedCopiesThatAreLeftInMemoryAreTold) {
  constexpr char kStages[] = R"(
import os, pathlib, shutil, train
identity = train.Log.identity
def stage(self, hyperparameters):
    identity(self, hyperparameters)
    self.start("staging_start")
    source, target = (pathlib.Path(train.variable(name)) for name in ("DATASET", "STAGE"))
    for path in [path for path in source.rglob("*") if path.is_file()]:
        copy = target / path.relative_to(source)
        shutil.copyfile(path, copy)
        with open(copy) as file:
            give_up(file.fileno())
    self.end("staging_stop")
    os.environ["ASSAY_DATASET"] = str(target)
train.Log.identity = stage
def give_up(fd):
    )";
  const auto run_of = [this, &kStages](const std::string& name, const std::string& give_up) {
    const std::string file =
        WriteExample(site_, python_, name,
                     {.round = kRound,
                      .nodes = 1,
                      .program = absl::StrCat(kStages, give_up, "\ntrain.main()\n")});
    const std::string text = ReadFile(file).value_or("");
    WriteFile(file, absl::StrReplaceAll(text, {{"staging      = \"none\"", "staging = \"node\""}}));
    const Outcome submitted = site_.Assay({"submit", file});
    EXPECT_EQ(submitted.exit_code, 0) << submitted.Text();
    const std::string run = site_.AssayJson({"entry", "show", "@last"})["runs"][0];
    site_.Assay({"logs", run, "--follow", "--timeout", "3m"});
    site_.Assay({"cancel", "@last", "--reason", "one run is enough"});
    return site_.AssayJson({"run", "show", run});
  };

  const Json warm = run_of("warm", "pass");
  EXPECT_EQ(warm["state"], "succeeded") << warm;
  EXPECT_THAT(RulesOf(warm), Contains("R-TIM-004")) << warm;

  const Json cold =
      run_of("cold", "os.fsync(fd); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)");
  EXPECT_EQ(cold["state"], "succeeded") << cold;
  EXPECT_THAT(RulesOf(cold), Not(Contains("R-TIM-004"))) << cold;
  EXPECT_THAT(site_.Assay({"run", "files", cold["id"], "caches_0.json"}).out,
              HasSubstr(R"("coldness": "cold")"));
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
  EXPECT_THAT(RulesOf(run), Contains("R-TIM-031")) << run;
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
  EXPECT_THAT(RulesOf(run), ::testing::IsSupersetOf(
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

TEST_F(CommandTest, OneThatNeedsMoreThanItsMemoryIsToldSo) {
  const Json run = FirstOfAll("greedy", {.round = kRound,
                                         .nodes = 1,
                                         .program = "everything = b'x' * (400 << 20)",
                                         .workload = "memory_mib = 200"});

  const std::string materials = site_.Assay({"run", "files", run["id"], "materials_0.json"}).out;
  if (absl::StrContains(materials, R"("limits": "none")")) GTEST_SKIP() << "no control groups here";
  EXPECT_THAT(materials, HasSubstr(R"("limits": "cgroup v)"));
  EXPECT_EQ(run["state"], "failed") << run;
  EXPECT_THAT(run["state_reason"].get<std::string>(),
              HasSubstr("the program needed more than its memory_mib of 200 MiB on node 0"));
}

TEST_F(CommandTest, OneThatInitialisesTooLongIsStopped) {
  const Json run = FirstOfAll("slow", {.round = "e2e-hasty", .program = R"(
import time, train
write = train.Log.write
def slow(self, how, key, value=None, **metadata):
    if key == "init_stop":
        time.sleep(1000)
    write(self, how, key, value, **metadata)
train.Log.write = slow
train.main()
)"});

  EXPECT_EQ(run["state"], "failed") << run;
  EXPECT_THAT(
      run["state_reason"].get<std::string>(),
      AllOf(HasSubstr("no run_start has come within 1s of init_start"), HasSubstr("R-TIM-022")));
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

  WriteFile(file, absl::StrReplaceAll(text, {{"stop_grace_s = 500", "image = \"no.sqsh\""}}));
  EXPECT_THAT(site_.Assay({"plan", file}).err,
              AllOf(HasSubstr("mistakes/no.sqsh"), HasSubstr("image_sha256 = ")));
}

}  // namespace
}  // namespace assay::testing
