// What the launcher "slurm" makes of Slurm's answers, with a Slurm that loses jobs, gives numbers
// again, refuses, lies and stays silent.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/random.h"
#include "server/launch/slurm/commands.h"
#include "server/launch/slurm/job_keeper.h"
#include "tests/support/status_matchers.h"

namespace assay::launch::slurm {
namespace {

using core::AllocationId;
using core::SubmissionId;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::IsOkAndHolds;
using ::testing::SizeIs;
using testing::StatusIs;
using Outcome = core::LaunchReported::Outcome;

class FakeSlurm final : public Slurm {
 public:
  enum class Answer { kYes, kRefused, kDoneAndFailed };

  absl::StatusOr<std::vector<Job>> Jobs() override {
    ++look_count;
    if (is_silent) return absl::UnavailableError("squeue did not end within 30s");
    return jobs;
  }
  absl::StatusOr<std::string> Submit(const JobRequest& request) override {
    ++submit_count;
    if (answer == Answer::kRefused)
      return absl::UnavailableError("sbatch: error: invalid partition specified: gpu");
    jobs.push_back({.id = absl::StrCat(next++),
                    .state = "PENDING",
                    .reason = "Resources",
                    .name = request.name,
                    .comment = request.comment});
    if (answer == Answer::kDoneAndFailed) return absl::UnavailableError("sbatch: exit code 1");
    return jobs.back().id;
  }
  absl::Status StopAgents(const std::string& job) override {
    stopped.push_back(job);
    return absl::OkStatus();
  }
  absl::Status Cancel(const std::string& id) override {
    cancelled.push_back(id);
    for (Job& job : jobs)
      if (job.id == id && PhaseOf(job.state) != JobPhase::kEnded) job.state = "CANCELLED";
    return absl::OkStatus();
  }

  std::string FindEnd(const std::string& id, const std::string& name) override {
    return ParseEnd(accounting, id, name);
  }

  int64_t LiveCount(const std::string& name) const {
    return std::count_if(jobs.begin(), jobs.end(), [&](const Job& job) {
      return job.name == name && PhaseOf(job.state) != JobPhase::kEnded;
    });
  }

  std::string accounting;  // as sacct has it
  bool is_silent = false;
  Answer answer = Answer::kYes;
  int64_t next = 4711;
  int submit_count = 0;
  int look_count = 0;
  std::vector<Job> jobs;
  std::vector<std::string> stopped;
  std::vector<std::string> cancelled;
};

class FakeFolder final : public JobFolder {
 public:
  absl::StatusOr<JobRequest> Prepare(const core::Allocation&) override { return JobRequest{}; }
  absl::Status Admit(AllocationId, const std::vector<std::string>& workers) override {
    admitted.insert(admitted.end(), workers.begin(), workers.end());
    return absl::OkStatus();
  }
  bool Settle(AllocationId) override { return is_settled; }
  void Close(AllocationId, bool) override { ++close_count; }

  bool is_settled = true;
  std::vector<std::string> admitted;
  int close_count = 0;
};

class SlurmKeeperTest : public ::testing::Test {
 protected:
  static core::Allocation Some(int64_t number = 12) {
    core::Allocation allocation{.id = AllocationId{number}};
    allocation.spec = {.launcher = "slurm", .node_count = 2, .submission = SubmissionId{42}};
    return allocation;
  }
  void Restart() { keeper_ = Make(); }
  std::unique_ptr<JobKeeper> Make() {
    return std::make_unique<JobKeeper>(
        KeeperOptions{.instance = "i1"}, &slurm_, &folder_,
        [this](core::LaunchReported report) { reports_.push_back(std::move(report)); });
  }
  // Looks whenever the keeper wants to, for so long.
  void Pass(absl::Duration duration) {
    for (const absl::Time end = now_ + duration;;) {
      const absl::Time next = keeper_->Look(now_);
      ASSERT_GT(next, now_);
      if (next > end) {
        now_ = end;
        return;
      }
      now_ = next;
    }
  }
  void Look() { keeper_->Look(now_); }
  void Run(Job* job) {
    job->state = "RUNNING";
    job->reason = "None";
    job->hosts = "n[0-1]";
    job->end_s = 2'000'000;
  }
  // An allocation whose job runs.
  void Begin() {
    keeper_->Want(Some());
    Look();
    Run(&slurm_.jobs[0]);
    Look();
    ASSERT_EQ(reports_.back().outcome, Outcome::kGranted);
  }

  FakeSlurm slurm_;
  FakeFolder folder_;
  std::vector<core::LaunchReported> reports_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::unique_ptr<JobKeeper> keeper_ = Make();
};

TEST_F(SlurmKeeperTest, SubmitsOneJobAndGrantsItsNodes) {
  keeper_->Want(Some());
  Look();
  ASSERT_THAT(slurm_.jobs, SizeIs(1));
  EXPECT_EQ(slurm_.jobs[0].name, "assay-a12");
  EXPECT_EQ(slurm_.jobs[0].comment, "assay i1 a-12 e-42");
  EXPECT_EQ(reports_.back().outcome, Outcome::kPending);
  EXPECT_EQ(reports_.back().job, "4711");
  slurm_.jobs[0].start_s = 1'000'600;
  Look();
  EXPECT_EQ(reports_.back().waiting.words, "Slurm job 4711 (assay-a12): \"Resources\"");
  EXPECT_EQ(reports_.back().waiting.expected_start_us, 1'000'600'000'000);
  const size_t count = reports_.size();
  Pass(absl::Minutes(5));
  EXPECT_EQ(reports_.size(), count) << "what is said once is not said again";

  Run(&slurm_.jobs[0]);
  Look();
  EXPECT_EQ(reports_.back().outcome, Outcome::kGranted);
  EXPECT_THAT(reports_.back().workers, ElementsAre("a12-0", "a12-1"));
  EXPECT_THAT(reports_.back().hosts, ElementsAre("n0", "n1"));
  EXPECT_EQ(reports_.back().deadline_us, 1'999'880'000'000) << "2 min to end in order";
  EXPECT_THAT(folder_.admitted, ElementsAre("a12-0", "a12-1"));
  EXPECT_EQ(slurm_.submit_count, 1);
}

TEST_F(SlurmKeeperTest, AJobOfWhichNobodyKnewIsFoundByItsName) {
  slurm_.answer = FakeSlurm::Answer::kDoneAndFailed;
  keeper_->Want(Some());
  Look();
  EXPECT_EQ(reports_.back().outcome, Outcome::kFailed);
  EXPECT_THAT(reports_.back().reason, HasSubstr("exit code 1"));
  Pass(absl::Seconds(5));
  keeper_->Want(Some());  // the core asks again
  Look();
  EXPECT_EQ(reports_.back().outcome, Outcome::kPending);
  EXPECT_EQ(slurm_.submit_count, 1);
}

TEST_F(SlurmKeeperTest, AfterARefusalItLooksThriceBeforeItTriesAgain) {
  slurm_.answer = FakeSlurm::Answer::kRefused;
  keeper_->Want(Some());
  Look();
  EXPECT_THAT(reports_.back().reason, HasSubstr("invalid partition"));
  for (int i = 0; i < 11; ++i) {
    keeper_->Want(Some());
    Pass(absl::Seconds(5));
  }
  EXPECT_EQ(slurm_.submit_count, 1);
  Pass(absl::Seconds(10));
  EXPECT_EQ(slurm_.submit_count, 2);
}

TEST_F(SlurmKeeperTest, EveryStartFindsTheJobOfTheOneBefore) {
  for (int i = 0; i < 100; ++i) {
    keeper_->Want(Some());
    Look();
    Restart();
  }
  EXPECT_EQ(slurm_.submit_count, 1);
  EXPECT_THAT(slurm_.cancelled, IsEmpty());
}

TEST_F(SlurmKeeperTest, NeverTwoJobsWhateverIsLost) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Stream random(seed, Purpose::kTest);
    slurm_ = FakeSlurm();
    Restart();
    keeper_->Want(Some());
    uint64_t draw = 0;
    for (int step = 0; step < 60; ++step) {
      slurm_.is_silent = random.Below(draw++, 4) == 0;
      slurm_.answer = static_cast<FakeSlurm::Answer>(random.Below(draw++, 3));
      if (random.Below(draw++, 6) == 0) {
        Restart();
        keeper_->Want(Some());
      }
      now_ = keeper_->Look(now_);
      ASSERT_LE(slurm_.LiveCount("assay-a12"), 1);
    }
    slurm_.is_silent = false;
    slurm_.answer = FakeSlurm::Answer::kYes;
    Pass(absl::Minutes(3));
    EXPECT_EQ(slurm_.LiveCount("assay-a12"), 1);
  }
}

TEST_F(SlurmKeeperTest, TheSecondOfTwoIsCancelled) {
  keeper_->Want(Some());
  Look();
  Job second = slurm_.jobs[0];
  second.id = "4712";
  slurm_.jobs.push_back(second);
  Run(&slurm_.jobs[1]);
  Look();
  EXPECT_THAT(slurm_.cancelled, ElementsAre("4711")) << "the one that has started stays";
  EXPECT_EQ(reports_.back().outcome, Outcome::kGranted);
}

TEST_F(SlurmKeeperTest, MissingIsNotFinished) {
  Begin();
  const size_t count = reports_.size();
  slurm_.jobs.clear();
  Pass(absl::Seconds(50));
  EXPECT_EQ(reports_.size(), count) << "three answers over a minute";
  Pass(absl::Seconds(20));
  EXPECT_EQ(reports_.back().outcome, Outcome::kEnded);
  EXPECT_EQ(reports_.back().reason, "Slurm: job 4711 vanished");
}

TEST_F(SlurmKeeperTest, TheSitesAccountingKnowsHowAMissingJobEnded) {
  Begin();
  slurm_.jobs.clear();
  slurm_.accounting =
      "4711|assay-a7|TIMEOUT\n4711|assay-a12|RUNNING\n4711|assay-a12|CANCELLED by 0\n";
  Pass(absl::Seconds(70));
  EXPECT_EQ(reports_.back().reason, "Slurm: CANCELLED");
}

TEST_F(SlurmKeeperTest, WhyNamesTheProfile) {
  core::Allocation allocation = Some();
  allocation.spec.profile = "gpu";
  keeper_->Want(allocation);
  Look();
  Look();
  EXPECT_EQ(reports_.back().waiting.words,
            "Slurm job 4711 (assay-a12, profile gpu): \"Resources\"");
}

TEST_F(SlurmKeeperTest, AForeignJobWithItsNumberIsLeftAlone) {
  Begin();
  slurm_.jobs[0] = {.id = "4711", .state = "RUNNING", .name = "other", .comment = "(null)"};
  slurm_.jobs.push_back(
      {.id = "4712", .state = "PENDING", .name = "assay-a12", .comment = "assay i2 a-12 e-42"});
  Pass(absl::Minutes(2));
  EXPECT_EQ(reports_.back().reason, "Slurm: job 4711 vanished");
  keeper_->Release(AllocationId{12});
  Pass(absl::Minutes(5));
  EXPECT_THAT(slurm_.cancelled, IsEmpty());
  EXPECT_THAT(slurm_.stopped, IsEmpty());
}

TEST_F(SlurmKeeperTest, OrphansAreShownToTheCoreAndCancelledIfItWantsThat) {
  slurm_.jobs.push_back(
      {.id = "7", .state = "PENDING", .name = "assay-a9", .comment = "assay i1 a-9 e-3"});
  Look();
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].allocation, AllocationId{9});
  EXPECT_EQ(reports_[0].outcome, Outcome::kPending);
  keeper_->Release(AllocationId{9});
  Pass(absl::Minutes(1));
  EXPECT_THAT(slurm_.cancelled, ElementsAre("7"));
  EXPECT_EQ(reports_.back().outcome, Outcome::kEnded);
}

TEST_F(SlurmKeeperTest, AStrayOfAnEarlierAllocationOfThatNumberMakesRoom) {
  slurm_.jobs.push_back(
      {.id = "7", .state = "RUNNING", .name = "assay-a12", .comment = "assay i1 a-12 e-3"});
  keeper_->Want(Some());
  Look();
  EXPECT_THAT(slurm_.cancelled, ElementsAre("7"));
  EXPECT_EQ(slurm_.submit_count, 1);
}

TEST_F(SlurmKeeperTest, AgentsLeaveBeforeTheJobIsCancelled) {
  Begin();
  keeper_->Release(AllocationId{12});
  Pass(absl::Seconds(55));
  EXPECT_THAT(slurm_.stopped, ElementsAre("4711"));
  EXPECT_THAT(slurm_.cancelled, IsEmpty());
  Pass(absl::Seconds(15));
  EXPECT_THAT(slurm_.cancelled, Contains("4711"));
  Pass(absl::Seconds(15));
  EXPECT_EQ(reports_.back().outcome, Outcome::kEnded);
  EXPECT_EQ(reports_.back().reason, "") << "the core knows why";
  EXPECT_EQ(folder_.close_count, 1);
}

TEST_F(SlurmKeeperTest, SlurmsWordCounts) {
  Begin();
  slurm_.jobs[0].state = "COMPLETING";
  Look();
  EXPECT_EQ(reports_.back().outcome, Outcome::kGranted) << "its word is to come";
  slurm_.jobs[0].state = "PREEMPTED";
  Pass(absl::Seconds(2));
  EXPECT_EQ(reports_.back().outcome, Outcome::kEnded);
  EXPECT_EQ(reports_.back().reason, "Slurm: PREEMPTED");
}

TEST_F(SlurmKeeperTest, WhatAgentsLeftIsDeliveredBeforeTheEndIsTold) {
  Begin();
  folder_.is_settled = false;
  slurm_.jobs[0].state = "TIMEOUT";
  Pass(absl::Minutes(1));
  EXPECT_EQ(reports_.back().outcome, Outcome::kGranted);
  slurm_.jobs.clear();
  folder_.is_settled = true;
  Pass(absl::Seconds(2));
  EXPECT_EQ(reports_.back().outcome, Outcome::kEnded);
  EXPECT_EQ(reports_.back().reason, "Slurm: TIMEOUT");
}

TEST_F(SlurmKeeperTest, ALostNodeIsNamed) {
  Begin();
  slurm_.jobs[0].hosts = "n1";
  Look();
  EXPECT_THAT(reports_.back().workers, ElementsAre("a12-1"));
  EXPECT_EQ(reports_.back().reason, "Slurm: NODE_FAIL n0");
  Restart();
  core::Allocation kept = Some();
  kept.state = core::AllocationState::kActive;
  kept.workers = {"a12-1"};
  kept.hosts = {"n1"};
  keeper_->Want(kept);
  Look();
  EXPECT_THAT(reports_.back().workers, ElementsAre("a12-1")) << "it keeps its name";
}

TEST_F(SlurmKeeperTest, NeitherRequeuedNorSuspendedJobsGoOn) {
  Begin();
  slurm_.jobs[0].state = "PENDING";
  Look();
  EXPECT_EQ(reports_.back().reason, "Slurm: requeued");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("4711"));
}

TEST_F(SlurmKeeperTest, WhatNeverPassesIsGivenUpAfterTenMinutes) {
  keeper_->Want(Some());
  Look();
  slurm_.jobs[0].reason = "PartitionNodeLimit";
  Pass(absl::Minutes(9));
  EXPECT_EQ(reports_.back().outcome, Outcome::kPending);
  Pass(absl::Minutes(2));
  EXPECT_EQ(reports_.back().reason, "Slurm: \"PartitionNodeLimit\" for 10m");
  EXPECT_THAT(slurm_.cancelled, ElementsAre("4711"));

  keeper_->Want(Some(13));
  Look();
  slurm_.jobs[1].state = "DREAMING";
  Pass(absl::Minutes(12));
  EXPECT_EQ(reports_.back().reason, "unknown: Slurm says DREAMING for 10m");
}

TEST_F(SlurmKeeperTest, WhileSlurmIsSilentNothingEnds) {
  keeper_->Want(Some());
  Look();
  slurm_.is_silent = true;
  const int before = slurm_.look_count;
  Pass(absl::Hours(1));
  EXPECT_LE(slurm_.look_count - before, 20) << "polls back off to 5 min";
  EXPECT_EQ(reports_.back().outcome, Outcome::kPending);
  EXPECT_THAT(reports_.back().waiting.words, HasSubstr("Slurm job 4711"));
  EXPECT_THAT(reports_.back().waiting.silence, HasSubstr("Slurm has not answered"));
  slurm_.is_silent = false;
  Pass(absl::Minutes(5));
  EXPECT_EQ(reports_.back().waiting.silence, "");
}

TEST_F(SlurmKeeperTest, AThousandAllocationsCostSixLooksAMinute) {
  for (int64_t n = 1; n <= 1000; ++n)
    keeper_->Want(Some(n));
  Pass(absl::Minutes(1));
  const int before = slurm_.look_count;
  Pass(absl::Minutes(10));
  EXPECT_LE(slurm_.look_count - before, 61);
  EXPECT_EQ(slurm_.submit_count, 1000);
}

TEST(SlurmJobListTest, ReadsLinesOfSqueue) {
  const std::vector<Job> jobs = ParseJobs(
      "slurm_load_jobs: warning\n"
      "4711|PENDING|ReqNodeNotAvail, UnavailableNodes:n2|1700000000|N/A|N/A||assay-a12|assay i1 "
      "a-12 "
      "e-42\n"
      "4712|RUNNING|None|1700000000|1700000001|1700009999|n[0-1]|x|with | in it\n"
      "4713|RUNNING|None\n");
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(jobs[0].reason, "ReqNodeNotAvail, UnavailableNodes:n2");
  EXPECT_EQ(jobs[0].start_s, 0);
  EXPECT_EQ(jobs[1].comment, "with | in it");
  EXPECT_EQ(jobs[1].end_s, 1700009999);
  EXPECT_EQ(ParseComment("i1", jobs[0].comment), AllocationId{12});
  EXPECT_EQ(ParseComment("i2", jobs[0].comment), std::nullopt);
  EXPECT_EQ(ParseComment("i1", "assay i1 a-12 e-42 and more"), std::nullopt);
}

TEST(SlurmJobListTest, ExpandsHosts) {
  EXPECT_THAT(ExpandHosts("n[0-2,7],gpu01"),
              IsOkAndHolds(ElementsAre("n0", "n1", "n2", "n7", "gpu01")));
  EXPECT_THAT(ExpandHosts("r[1-2]n[08-10]"),
              IsOkAndHolds(ElementsAre("r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10")));
  EXPECT_THAT(ExpandHosts(""), IsOkAndHolds(IsEmpty()));
  for (const char* bad : {"n[0-", "n[3-1]", "n]", "n[a]", "a,,b", "n[0-99999999]"})
    EXPECT_THAT(ExpandHosts(bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
}

TEST(SlurmJobListTest, FindsTheNumberThatSbatchPrints) {
  EXPECT_EQ(ParseJobId("sbatch: warning: 3 things\n4711;cluster\n"), "4711");
  EXPECT_EQ(ParseJobId("4711\n"), "4711");
  EXPECT_EQ(ParseJobId("Submitted batch job\n"), std::nullopt);
}

TEST(SlurmCommandsTest, SaysAllThatSlurmMustKnow) {
  EXPECT_THAT(
      SubmitArguments({.name = "assay-a12",
                       .comment = "assay i1 a-12 e-42",
                       .node_count = 3,
                       .minutes = 90,
                       .directory = "/shared/a12",
                       .output_path = "job.out",
                       .script_path = "/shared/a12/job.sh",
                       .options = {"--partition=main"}}),
      ElementsAre("--parsable", "--job-name=assay-a12", "--comment=assay i1 a-12 e-42",
                  "--dependency=singleton", "--nodes=3", "--ntasks-per-node=1", "--exclusive",
                  "--no-kill", "--no-requeue", "--export=NONE", "--time=90", "--chdir=/shared/a12",
                  "--output=job.out", "--partition=main", "/shared/a12/job.sh"));
}

}  // namespace
}  // namespace assay::launch::slurm
