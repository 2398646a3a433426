// Entries on the nodes of a real Slurm: a job for each, agents that come with it and go with it,
// and what happens when Slurm, its commands, a job or the coordinator end in between.

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/e2e/slurm_cluster.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kLauncher[] = R"(launcher {
  kind: "slurm"
  slurm {
    shared_directory: "SITE/shared"
    server_address: "127.0.0.1:PORT"
    command_directory: "SITE/slurm"
    poll_interval_s: 1
    profiles {
      name: "pair" partition: "spare" constraint: "rack0" minutes_max: 60
      accounts { key: "Example" value: "eu-hpc" }
    }
    profiles { name: "lost" partition: "nowhere" }
    profiles { name: "scavenge" partition: "spare" is_preemptible: true }
    worker { rendezvous_host: "127.0.0.1" run_user: "root" core_count: 1 data_directory: "SITE/nodes" }
  }
})";

// sbatch that does its work and says that it has not, while a file is there.
constexpr char kLiar[] = R"(#!/bin/sh
/usr/bin/sbatch "$@" || exit
if [ -e SITE/lie ]; then echo "sbatch: error: Batch job submission failed: timed out" >&2; exit 1; fi
)";

// What a submitter's own job runs, who has no way to the coordinator but the network.
constexpr char kJobOfHisOwn[] = R"(#!/bin/sh
set -e
unset ASSAY_SOCKET
export ASSAY_SERVER=ADDRESS ASSAY_CA=SITE/etc/ca.crt ASSAY_TOKEN_FILE=SITE/token
folder=$(PROGRAMS/assay allocation join e-1 SITE/own --worker SITE/more)
exec srun --overlap --no-kill --kill-on-bad-exit=0 --wait=0 --ntasks-per-node=1 \
  PROGRAMS/assay-worker fleet "$folder"
)";

constexpr char kToken[] = "assay_[a-z0-9]{20}";

class SlurmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string obstacle = SlurmCluster::Obstacle(); !obstacle.empty()) {
      ASSERT_EQ(std::getenv("CI"), nullptr) << obstacle;
      GTEST_SKIP() << obstacle;
    }
    cluster_ = std::make_unique<SlurmCluster>(&site_);
    for (const char* command : {"squeue", "scancel", "srun"})
      std::filesystem::create_symlink(absl::StrCat("/usr/bin/", command), Command(command));
    ASSERT_THAT(WriteFileAtomic(Command("sbatch"), OfSite(kLiar), 0755), IsOk());
    coordinator_ = std::make_unique<Coordinator>(&site_, OfSite(kLauncher));
    ProvideBeacons(site_, "small", 128, 16);
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const char* entry : {"a1", "a2", "a3"})
      ADD_FAILURE()
          << ReadFile(site_.Path(absl::StrCat("shared/", entry, "/job.out"))).value_or("");
  }

  std::string OfSite(const char* text) const {
    return absl::StrReplaceAll(text, {{"SITE/", site_.Path("")}});
  }
  std::string Command(const char* name) const {
    CHECK_OK(MakeDirectories(site_.Path("slurm")));
    return site_.Path(absl::StrCat("slurm/", name));
  }
  // An entry of which no run ends by itself; `keys` are more for its file.
  void SubmitEndless(const std::string& keys = "") {
    SubmissionText text = {.epochs_max = 2000};
    text.base_learning_rate = "0.000001";
    const std::string path = site_.Path("endless.toml");
    WriteFile(path, absl::StrCat(keys, text.ToString()));
    const Outcome submitted = site_.Assay({"submit", path});
    ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
  }
  void Cancel(const std::string& entry) {
    const Outcome cancelled = site_.Assay({"cancel", entry});
    ASSERT_EQ(cancelled.exit_code, 0) << cancelled.Text();
    EXPECT_TRUE(Await([&] { return Jobs().empty(); })) << "the nodes are given back";
  }
  // Jobs that have not ended, as "4711 assay-a1".
  std::vector<std::string> Jobs() const {
    return absl::StrSplit(cluster_->Run({"squeue", "--noheader", "--format=%A %j"}), '\n',
                          absl::SkipEmpty());
  }
  std::string FirstRun(const std::string& entry) const {
    return site_.AssayJson({"run", "list", "--entry", entry})["items"].at(0)["id"];
  }
  // A command about the JOB of the entry's first run, once that runs.
  void Strike(const std::string& entry, const std::string& command) const {
    const std::string run = FirstRun(entry);
    ASSERT_TRUE(Await([&] { return StateOfRun(run) == "running"; })) << entry << Why(entry);
    const std::string lease = site_.AssayJson({"run", "show", run})["allocation"];
    const std::string job = site_.AssayJson({"allocation", "show", lease})["job"];
    const Outcome done =
        site_.RunProgram({"/bin/sh", "-c", absl::StrReplaceAll(command, {{"JOB", job}})});
    EXPECT_EQ(done.exit_code, 0) << done.Text();
  }
  void ExpectFailure(const std::string& entry, const std::string& words) const {
    const std::string run = FirstRun(entry);
    EXPECT_TRUE(Await([&] { return StateOfRun(run) == "failed"; }));
    EXPECT_THAT(site_.AssayJson({"run", "show", run})["state_reason"].dump(), ContainsRegex(words));
  }
  std::string StateOfRun(const std::string& run) const {
    return site_.AssayJson({"run", "show", run}).value("state", "");
  }
  // On how many nodes the run has ended, as its agents know it.
  int EndCount(const std::string& run) const {
    int count = 0;
    std::error_code error;
    std::filesystem::recursive_directory_iterator it(site_.Path("nodes"), error);
    for (; !error && it != std::filesystem::end(it); it.increment(error))
      count += it->path().filename() == "exit.json" &&
               absl::StrContains(it->path().string(), absl::StrCat("/", run, "-"));
    return count;
  }
  std::string Why(const std::string& entry) const { return site_.Assay({"why", entry}).out; }

  Site site_;
  std::unique_ptr<SlurmCluster> cluster_;
  std::unique_ptr<Coordinator> coordinator_;
};

TEST_F(SlurmTest, AnEntryRunsInAJobOfItsOwn) {
  const Outcome submitted = site_.Assay({"submit", WriteSubmission(site_, "small.toml", {})});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
  ASSERT_TRUE(Await([&] { return StateOfRun("r-1") == "running"; }));
  const std::string job = cluster_->Run({"scontrol", "show", "job", "1"});
  EXPECT_THAT(job,
              AllOf(HasSubstr("JobName=assay-a1"), HasSubstr(" a-1 e-1"), HasSubstr("NumNodes=2")));
  EXPECT_THAT(job, Not(ContainsRegex(kToken)));
  EXPECT_THAT(site_.RunProgram({"/bin/ps", "auxeww"}).out, Not(ContainsRegex(kToken)));
  EXPECT_THAT(*ListDirectory(site_.Path("shared/a1/tokens")), IsEmpty()) << "used up";
  const Json lease = site_.AssayJson({"allocation", "show", "a-1"});
  EXPECT_EQ(lease["job"], "1");
  EXPECT_EQ(lease["hosts"], Json({"n0", "n1"}));

  const Outcome waited = site_.Assay({"wait", "e-1"});
  EXPECT_EQ(waited.exit_code, 0) << waited.Text();
  EXPECT_EQ(site_.AssayJson({"entry", "show", "e-1"})["state"], "valid");
  for (const char* run : {"r-1", "r-2", "r-3"})
    EXPECT_EQ(site_.AssayJson({"run", "show", run})["nodes"], Json({"a1-0", "a1-1"}));
  EXPECT_TRUE(Await([&] { return Jobs().empty(); }, absl::Seconds(30)));
  EXPECT_TRUE(Await([&] {
    return site_.AssayJson({"allocation", "show", "a-1"})["state"] == "ended";
  }));
  EXPECT_FALSE(FileExists(site_.Path("shared/a1"))) << "nothing is left behind";
  EXPECT_THAT(*ListDirectory(site_.Path("nodes")), IsEmpty());
}

TEST_F(SlurmTest, AJobThatIsCancelledFailsItsRunWithSlurmsWord) {
  SubmitEndless();
  ASSERT_TRUE(Await([&] { return StateOfRun("r-1") == "running"; }));
  cluster_->Run({"scancel", "1"});
  EXPECT_TRUE(Await([&] { return StateOfRun("r-1") == "failed"; }, absl::Seconds(15)));
  EXPECT_THAT(site_.AssayJson({"run", "show", "r-1"})["state_reason"].dump(),
              HasSubstr("Slurm: CANCELLED"));
}

TEST_F(SlurmTest, WhatEndsWhileTheCoordinatorIsAwayCountsWhenItIsBack) {
  ASSERT_EQ(site_.Assay({"submit", WriteSubmission(site_, "small.toml", {})}).exit_code, 0);
  ASSERT_TRUE(Await([&] { return StateOfRun("r-2") == "running"; }));
  coordinator_->Kill();
  // The second run ends on both nodes, and then the job.
  ASSERT_TRUE(Await([&] { return EndCount("r-2") == 2; }));
  cluster_->Run({"scancel", "1"});
  ASSERT_TRUE(Await([&] { return Jobs().empty(); }));
  EXPECT_THAT(*ListDirectory(site_.Path("nodes")), IsEmpty());
  EXPECT_THAT(*ListDirectory(site_.Path("shared/a1/salvage")), SizeIs(2));

  coordinator_->Start();
  const Outcome waited = site_.Assay({"wait", "e-1"});
  EXPECT_EQ(waited.exit_code, 0) << waited.Text();
  const Json runs = site_.AssayJson({"run", "list", "--entry", "e-1"})["items"];
  EXPECT_THAT(runs, SizeIs(3)) << "none was lost";
  EXPECT_EQ(site_.AssayJson({"run", "show", "r-2"})["nodes"], Json({"a1-0", "a1-1"}));
  EXPECT_EQ(site_.AssayJson({"run", "show", "r-3"})["nodes"], Json({"a2-0", "a2-1"}));
  EXPECT_THAT(*ListDirectory(site_.Path("shared/a1/salvage")), IsEmpty());
  EXPECT_TRUE(Await([&] { return Jobs().empty(); }));
}

TEST_F(SlurmTest, SlurmsDaemonsMayGoAndComeBackDuringARun) {
  ASSERT_EQ(site_.Assay({"submit", WriteSubmission(site_, "small.toml", {})}).exit_code, 0);
  ASSERT_TRUE(Await([&] { return StateOfRun("r-1") == "running"; }));
  cluster_->KillNode(0);
  cluster_->StopController();
  ASSERT_TRUE(Await([&] { return StateOfRun("r-2") == "running"; }));
  cluster_->StartController();
  cluster_->StartNode(0);
  const Outcome waited = site_.Assay({"wait", "e-1"});
  EXPECT_EQ(waited.exit_code, 0) << waited.Text();
  for (const char* run : {"r-1", "r-2", "r-3"})
    EXPECT_EQ(site_.AssayJson({"run", "show", run})["nodes"], Json({"a1-0", "a1-1"}));
  EXPECT_TRUE(Await([&] { return Jobs().empty(); }));
}

TEST_F(SlurmTest, ANodeThatSlurmHasLostFailsTheRunByName) {
  SubmitEndless();
  ASSERT_TRUE(Await([&] { return StateOfRun("r-1") == "running"; }));
  cluster_->KillNode(1);
  EXPECT_TRUE(Await([&] { return StateOfRun("r-1") == "failed"; }));
  EXPECT_THAT(site_.AssayJson({"run", "show", "r-1"})["state_reason"].dump(),
              HasSubstr("Slurm: NODE_FAIL n1"));
  EXPECT_TRUE(Await([&] { return Jobs().empty(); })) << "the rest is given back";
}

TEST_F(SlurmTest, AnEntryChoosesAmongTheOperatorsProfiles) {
  const Outcome checked =
      site_.RunProgram({site_.Program("assayd"), "--check_config",
                        absl::StrCat("--config=", site_.Path("etc/assayd.textproto"))});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(checked.err, AllOf(ContainsRegex("warning: launcher.slurm.profiles \"lost\": .*"
                                               "Invalid partition name specified"),
                                 Not(HasSubstr("pair"))));

  const auto choose = [&](const std::string& keys) {
    const std::string path = site_.Path("chosen.toml");
    WriteFile(path, absl::StrCat(keys, "\n", SubmissionText{}.ToString()));
    return path;
  };
  const Outcome refused = site_.Assay({"plan", choose("fleet = \"par\"")});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("chosen.toml:1:9: error R-FLT-001"),
                                 HasSubstr("choose one of pair, lost, scavenge")));
  const Outcome long_runs = site_.Assay({"plan", choose("fleet = \"pair\"\nminutes_per_run = 40")});
  EXPECT_THAT(long_runs.err, HasSubstr("chosen.toml:2:19: error R-FLT-003"));
  const std::string good = choose("fleet = \"pair\"\nminutes_per_run = 2");
  EXPECT_THAT(site_.Assay({"plan", good}).out,
              HasSubstr("launcher slurm, profile pair, would be asked for them, for 28 min"));

  cluster_->Run({"scontrol", "update", "partitionname=spare", "state=down"});
  ASSERT_EQ(site_.Assay({"submit", good}).exit_code, 0);
  ASSERT_TRUE(Await([&] { return absl::StrContains(Why("e-1"), "PartitionDown"); }));
  EXPECT_THAT(Why("e-1"), HasSubstr("(assay-a1, profile pair): \"PartitionDown\""));
  const Json lease = site_.AssayJson({"allocation", "show", "a-1"});
  EXPECT_EQ(lease["profile"], "pair");
  EXPECT_THAT(cluster_->Run({"scontrol", "show", "job", lease["job"]}),
              AllOf(HasSubstr("Partition=spare"), HasSubstr("Features=rack0"),
                    HasSubstr("Account=eu-hpc"), HasSubstr("TimeLimit=00:28:00")));
  Cancel("e-1");
}

// Five entries at once, of which one can run.
TEST_F(SlurmTest, WhatIsDoneToAJobIsToldInSlurmsWord) {
  for (const char* keys : {"", "", "", "", "fleet = \"scavenge\"\nallow_preemptible = true\n"})
    SubmitEndless(keys);
  Strike("e-1", "scontrol suspend JOB");
  ExpectFailure("e-1", "Slurm: SUSPENDED");
  Strike("e-2", "scontrol update jobid=JOB requeue=1 && scontrol requeue JOB");
  ExpectFailure("e-2", "Slurm: requeued");
  Strike("e-3", "scancel --signal=KILL --full JOB");
  ExpectFailure("e-3", "Slurm: CANCELLED");

  Strike("e-4", "true JOB");
  const auto quotes = [&](const std::string& words) {
    return Await([&] { return absl::StrContains(Why("e-5"), words); }, absl::Seconds(20));
  };
  cluster_->Run({"scontrol", "update", "nodename=n[0-2]", "state=drain", "reason=disks"});
  EXPECT_TRUE(quotes("DRAINED")) << Why("e-5");
  cluster_->Run({"scontrol", "update", "nodename=n[0-2]", "state=resume"});
  cluster_->Run({"scontrol", "create", "reservation", "reservationname=upkeep", "starttime=now",
                 "duration=60", "nodes=ALL", "users=nobody", "flags=maint,ignore_jobs"});
  EXPECT_TRUE(quotes("Reserved for maintenance")) << Why("e-5");
  const absl::Time deleted_at = absl::Now();
  cluster_->Run({"scontrol", "delete", "reservationname=upkeep"});
  const absl::Time held_at = absl::Now();
  cluster_->Run({"scontrol", "hold", "5"});
  EXPECT_TRUE(quotes("\"JobHeldAdmin\"")) << Why("e-5");
  cluster_->AwaitSavedState("resv_state", deleted_at);
  cluster_->AwaitSavedState("job_state", held_at);
  cluster_->KillController();
  cluster_->StartController();
  EXPECT_TRUE(Await([&] {
    return site_.RunProgram({"/usr/bin/scontrol", "release", "5"}).exit_code == 0;
  }));
  Strike("e-4", "scontrol update jobid=JOB endtime=now");
  ExpectFailure("e-4", "allocation a-4: its deadline has come, brought forward by [0-9]+ min");

  Strike("e-5", "sbatch --nodes=3 --exclusive --wrap=true");
  // For Slurm a job is well that its agents leave within its grace time; and the coordinator may
  // see the end that the preemption sets before it has come.
  ExpectFailure("e-5", "Slurm: (PREEMPTED|COMPLETED)|brought forward by [0-9]+ min");
  EXPECT_TRUE(Await([&] { return Jobs().empty(); })) << "there is no second start";
}

TEST_F(SlurmTest, ASubmitterBringsNodesOfHisOwn) {
  cluster_->Run({"scontrol", "update", "partitionname=spare", "state=down"});
  WriteFile(site_.Path("mine.toml"),
            absl::StrCat("fleet = \"pair\"\nminutes_per_run = 2\n", SubmissionText{}.ToString()));
  ASSERT_EQ(site_.Assay({"submit", site_.Path("mine.toml")}).exit_code, 0);
  WriteFile(site_.Path("more"), OfSite("rendezvous_host: \"127.0.0.1\" run_user: \"root\" "
                                       "core_count: 1 data_directory: \"SITE/nodes\"\n"));
  const Outcome token = site_.Assay({"admin", "token", "create", "--principal", "alice", "--role",
                                     "submitter", "--organization", "Example"});
  ASSERT_EQ(token.exit_code, 0) << token.Text();
  WriteFile(site_.Path("token"), token.out);
  WriteFile(site_.Path("mine.sh"),
            absl::StrReplaceAll(
                OfSite(kJobOfHisOwn),
                {{"PROGRAMS", std::filesystem::path(site_.Program("assay")).parent_path().string()},
                 {"ADDRESS", coordinator_->address()}}));
  const Outcome submitted =
      site_.RunProgram({"/usr/bin/sbatch", "--parsable", "--nodes=2", "--exclusive", "--time=30",
                        absl::StrCat("--output=", site_.Path("mine.out")), site_.Path("mine.sh")});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.Text();
  const Outcome waited = site_.Assay({"wait", "e-1"});
  EXPECT_EQ(waited.exit_code, 0) << waited.Text() << ReadFile(site_.Path("mine.out")).value_or("");
  const Json run = site_.AssayJson({"run", "show", "r-3"});
  EXPECT_EQ(run["nodes"], Json({"own-a2-0", "own-a2-1"}));
  EXPECT_EQ(run["nodes_of"], "submitter's allocation");
  EXPECT_TRUE(Await([&] { return Jobs().empty(); })) << "the agents leave, and so the job ends";
  EXPECT_EQ(site_.AssayJson({"allocation", "show", "a-2"})["state"], "ended");
}

TEST_F(SlurmTest, ASharedFolderThatIsGoneOrFullIsNamedAndTheJobComesWhenItIsBack) {
  const std::string shared = site_.Path("shared");
  const auto is_quoted = [&](const std::string& words) {
    return Await([&] { return absl::StrContains(Why("e-1"), words); });
  };
  std::filesystem::rename(shared, site_.Path("away"));
  WriteFile(shared, "");
  SubmitEndless();
  EXPECT_TRUE(is_quoted("Not a directory")) << Why("e-1");
  EXPECT_THAT(Why("e-1"), HasSubstr(shared));
  std::filesystem::remove(shared);
  std::filesystem::create_directory(shared);
  ASSERT_EQ(site_.RunProgram({"/usr/bin/mount", "-t", "tmpfs", "-o", "nr_inodes=2", "none", shared})
                .exit_code,
            0);
  EXPECT_TRUE(is_quoted("No space left on device")) << Why("e-1");
  EXPECT_THAT(Jobs(), IsEmpty());
  ASSERT_EQ(site_.RunProgram({"/usr/bin/umount", shared}).exit_code, 0);
  std::filesystem::remove(shared);
  std::filesystem::rename(site_.Path("away"), shared);
  EXPECT_TRUE(Await([&] { return StateOfRun("r-1") == "running"; })) << Why("e-1");
  Cancel("e-1");
}

TEST_F(SlurmTest, OneJobWhateverIsLostOnTheWay) {
  // An sbatch of which nobody knows what it did.
  WriteFile(site_.Path("lie"), "");
  SubmitEndless();
  ASSERT_TRUE(Await([&] { return absl::StrContains(Why("e-1"), "timed out"); }));
  ASSERT_TRUE(Await([&] { return StateOfRun("r-1") == "running"; }));
  EXPECT_EQ(Jobs(), std::vector<std::string>{"1 assay-a1"});
  std::filesystem::remove(site_.Path("lie"));
  Cancel("e-1");

  // The coordinator is killed while the job waits.
  cluster_->Run({"scontrol", "update", "partitionname=main", "state=down"});
  SubmitEndless();
  ASSERT_TRUE(Await([&] { return absl::StrContains(Why("e-2"), "PartitionDown"); }));
  EXPECT_THAT(Why("e-2"), HasSubstr("min for Slurm job 2 (assay-a2): \"PartitionDown\""));
  coordinator_->Kill();
  coordinator_->Start();
  ASSERT_TRUE(Await([&] { return absl::StrContains(Why("e-2"), "PartitionDown"); }));
  EXPECT_EQ(Jobs(), std::vector<std::string>{"2 assay-a2"});

  // Slurm does not answer, and does again.
  cluster_->StopController();
  EXPECT_TRUE(Await([&] { return absl::StrContains(Why("e-2"), "Slurm has not answered"); }));
  cluster_->StartController();
  ASSERT_TRUE(Await([&] {
    return site_.RunProgram({"/usr/bin/scontrol", "update", "partitionname=main", "state=up"})
               .exit_code == 0;
  }));
  const Json runs = site_.AssayJson({"run", "list", "--entry", "e-2"})["items"];
  ASSERT_FALSE(runs.empty());
  const std::string run = runs[0]["id"];
  EXPECT_TRUE(Await([&] { return StateOfRun(run) == "running"; }));
  EXPECT_EQ(Jobs(), std::vector<std::string>{"2 assay-a2"});
  Cancel("e-2");
}

}  // namespace
}  // namespace assay::testing
