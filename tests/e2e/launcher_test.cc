// An MPI program under srun and under mpirun on two nodes of a real Slurm, and under mpirun where
// there is none: deploy/examples/python with Open MPI and mpi4py of Debian.

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/program_example.h"
#include "tests/e2e/slurm_cluster.h"
#include "tests/support/await.h"
#include "tests/support/official_checker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr char kLauncher[] = R"(launcher {
  kind: "slurm"
  slurm {
    shared_directory: "SITE/shared"
    server_address: "127.0.0.1:PORT"
    poll_interval_s: 1
    worker {
      rendezvous_host: "127.0.0.1" run_user: "root" core_count: 1 data_directory: "SITE/nodes"
      software_directories: "SOFTWARE"
    }
  }
})";

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string obstacle;
    checker_ = ProvideOfficialChecker(&obstacle);
    if (obstacle.empty() && !HasDebianModule(site_, "mpi4py.MPI")) {
      obstacle = "mpi4py is not installed: python3-mpi4py of deploy/packages.txt";
      ASSERT_EQ(std::getenv("CI"), nullptr) << obstacle;
    }
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  }
  // A coordinator whose nodes are those of a Slurm, if that can be had here.
  bool StartWithSlurm() {
    if (const std::string obstacle = SlurmCluster::Obstacle(); !obstacle.empty()) {
      EXPECT_EQ(std::getenv("CI"), nullptr) << obstacle;
      return false;
    }
    cluster_ = std::make_unique<SlurmCluster>(&site_);
    coordinator_ = std::make_unique<Coordinator>(
        &site_, absl::StrReplaceAll(kLauncher, {{"SITE/", site_.Path("")},
                                                {"SOFTWARE", PackagesOf(site_, checker_)}}));
    ProvideBeacons(site_, "beacons", 256, 64);
    return true;
  }
  std::string Write(const std::string& name, Example wanted) {
    wanted.name = "mpi";
    return WriteDebianExample(site_, checker_, name, std::move(wanted));
  }
  // Of the programs, launchers and their helpers that have to do with a run of this site.
  std::vector<std::string> Remaining() const {
    std::vector<std::string> remaining;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      const std::string words = ReadFile(entry.path() / "cmdline").value_or("");
      const std::string environment = ReadFile(entry.path() / "environ").value_or("");
      const bool is_ours = absl::StrContains(environment, site_.Path("")) ||
                           absl::StrContains(words, site_.Path(""));
      for (const char* word : {"train_mpi", "program.py", "mpirun", "orted", "enter", "--mpi=pmix"})
        if (is_ours && absl::StrContains(words, word))
          remaining.push_back(absl::StrReplaceAll(words, {{absl::string_view("\0", 1), " "}}));
    }
    return remaining;
  }
  int CountOf(const std::string& word) const {
    int count = 0;
    for (const std::string& words : Remaining())
      count += absl::StrContains(words, word);
    return count;
  }
  Json FirstRunOf(const std::string& entry) const {
    return site_.AssayJson({"run", "show", site_.AssayJson({"entry", "show", entry})["runs"][0]});
  }

  Site site_;
  std::string checker_;
  std::unique_ptr<SlurmCluster> cluster_;
  std::unique_ptr<Coordinator> coordinator_;
};

TEST_F(LauncherTest, AnMpiProgramUnderSrunEndsValidWithWitnessedTouches) {
  if (!StartWithSlurm()) GTEST_SKIP();

  ExpectValidEntry(site_, checker_, Write("srun", {.ranks_per_node = 2, .launcher = "srun"}));

  EXPECT_THAT(site_.Assay({"run", "files", "r-1", "materials_1.json"}).out,
              HasSubstr("\"isolation\": \"namespaces\""));
  EXPECT_EQ(site_.AssayJson({"entry", "show", "e-1"})["workload"]["launcher"], "srun");
  const Json run = site_.AssayJson({"run", "show", "r-1"});
  EXPECT_TRUE(run.contains("first_touch_us")) << "by a process of the run: " << run;
  EXPECT_TRUE(Await([&] { return Remaining().empty(); }));
}

TEST_F(LauncherTest, AnMpiProgramUnderMpirunInASlurmJobEndsValidWithWitnessedTouches) {
  if (!StartWithSlurm()) GTEST_SKIP();

  ExpectValidEntry(site_, checker_, Write("mpirun", {.launcher = "mpirun"}));

  EXPECT_EQ(site_.AssayJson({"run", "show", "r-1"})["nodes"], Json({"a1-0", "a1-1"}));
  EXPECT_TRUE(Await([&] { return Remaining().empty(); }));
}

TEST_F(LauncherTest, ARankThatDiesEndsAllOnAllNodesUnderEither) {
  if (!StartWithSlurm()) GTEST_SKIP();
  const std::string program = R"(
import signal, sys, time
from mpi4py import MPI
signal.signal(signal.SIGTERM, signal.SIG_IGN)
total = MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1)
if MPI.COMM_WORLD.rank == 1:
    import os
    os._exit(total)
time.sleep(1000)
)";
  for (const char* launcher : {"srun", "mpirun"}) {
    const std::string file = Write(launcher, {.round = kRound,
                                              .program = program,
                                              .workload = "stop_grace_s = 2",
                                              .launcher = launcher});
    const Outcome submitted = site_.Assay({"submit", file, "--wait", "--timeout", "3m"});
    EXPECT_NE(submitted.exit_code, 0);
    const Json run = FirstRunOf("@last");
    EXPECT_EQ(run["state"], "failed") << run;
    EXPECT_EQ(run["exit_code"], 13) << run;
    EXPECT_THAT(run["state_reason"].get<std::string>(),
                HasSubstr("the program ended with code 3 on node 1"));
    EXPECT_TRUE(Await([&] { return Remaining().empty(); }, absl::Seconds(20)))
        << ::testing::PrintToString(Remaining());
  }
}

TEST_F(LauncherTest, AnMpiProgramThatAbortsIsToldWithItsCode) {
  if (!StartWithSlurm()) GTEST_SKIP();
  for (const char* launcher : {"srun", "mpirun"}) {
    const std::string file =
        Write(absl::StrCat("abort-", launcher), {.round = kRound,
                                                 .program = "from mpi4py import MPI\n"
                                                            "MPI.COMM_WORLD.Barrier()\n"
                                                            "if MPI.COMM_WORLD.rank == 1:\n"
                                                            "    MPI.COMM_WORLD.Abort(7)\n"
                                                            "MPI.COMM_WORLD.Barrier()\n",
                                                 .launcher = launcher});
    site_.Assay({"submit", file, "--wait", "--timeout", "3m"});
    EXPECT_THAT(FirstRunOf("@last")["state_reason"].dump(), HasSubstr("code 7 on node"));
  }
}

TEST_F(LauncherTest, WhatIsCancelledLeavesNothing) {
  if (!StartWithSlurm()) GTEST_SKIP();
  for (const char* launcher : {"srun", "mpirun"}) {
    const std::string file =
        Write(absl::StrCat("endless-", launcher), {.round = kRound,
                                                   .program = "import time\n"
                                                              "from mpi4py import MPI\n"
                                                              "MPI.COMM_WORLD.Barrier()\n"
                                                              "print('all are there', flush=True)\n"
                                                              "time.sleep(1000)\n",
                                                   .workload = "stop_grace_s = 2",
                                                   .launcher = launcher});
    ASSERT_EQ(site_.Assay({"submit", file}).exit_code, 0);
    // On both nodes.
    ASSERT_TRUE(Await([&] { return CountOf("program.py") >= 2; })) << launcher;
    EXPECT_EQ(site_.Assay({"cancel", "@last"}).exit_code, 0);
    EXPECT_TRUE(Await([&] { return Remaining().empty(); }, absl::Seconds(20)))
        << ::testing::PrintToString(Remaining());
  }
}

TEST_F(LauncherTest, WithoutSlurmMpirunWorksAndSrunIsRefusedAtOnce) {
  coordinator_ = std::make_unique<Coordinator>(&site_);
  ProvideBeacons(site_, "beacons", 256, 64);
  const Outcome refused = site_.Assay({"plan", Write("srun", {.launcher = "srun"})});
  EXPECT_EQ(refused.exit_code, 3) << refused.Text();
  EXPECT_THAT(refused.err, ContainsRegex("cosmoflow-mpi.toml:[0-9]+:[0-9]+: error R-WRK-011"));

  ExpectValidEntry(site_, checker_, Write("mpirun", {}));
  EXPECT_TRUE(Await([&] { return Remaining().empty(); }));
}

}  // namespace
}  // namespace assay::testing
