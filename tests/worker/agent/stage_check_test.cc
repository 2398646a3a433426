#include "worker/agent/stage_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/fake_clock.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/file_system.h"
#include "worker/agent/run_recorder.h"
#include "worker/agent/step_process.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kCopyBytes = size_t{24} << 20;  // more than the allowance

enum class Leaves { kUnwritten, kWarm, kCold };

// A copy as a program leaves it.
void Stage(const std::string& path, Leaves how) {
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  CHECK_OK(WriteAll(file.get(), std::string(kCopyBytes, 'x')));
  if (how == Leaves::kUnwritten) return;
  CHECK(fsync(file.get()) == 0);
  if (how == Leaves::kCold) CHECK(posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
}

class StageCheckTest : public ::testing::Test {
 protected:
  StageCheckTest() : directory_(*RunDirectory::ForRun(run_.worker.data_directory(), run_.key)) {
    run_.spec.mutable_dataset()->set_is_staged(true);
    run_.spec.set_is_staging_timed(false);
    for (const char* split : {"train", "validation"})
      CHECK_OK(MakeDirectories(JoinPath(stage_, split)));
  }
  std::optional<NodeFault> Check(absl::Duration elapsed = absl::ZeroDuration()) {
    return CheckStage({JoinPath(stage_, "train")}, clock_.Wall() - elapsed, clock_);
  }
  // What findings an agent makes of a run whose clock starts now.
  std::vector<std::string> Findings() {
    CHECK_OK(PrepareRun(directory_, run_.spec, run_.worker, "{}"));
    const absl::StatusOr<std::unique_ptr<RunRecorder>> recorder =
        RunRecorder::Open(directory_, run_.key, &clock_);
    CHECK_OK(recorder.status());
    const std::string line = absl::StrCat(
        ":::MLLOG {\"namespace\": \"\", \"time_ms\": ", absl::ToUnixMillis(clock_.Wall()),
        ", \"event_type\": \"INTERVAL_START\", \"key\": \"run_start\", \"value\": null, "
        "\"metadata\": {\"file\": \"t\", \"lineno\": 1}}\n");
    if (run_.spec.node_rank() == 0) {
      CHECK_OK(WriteFileAtomic(directory_.ResultPath(3), line + "another line\n"));
    } else {
      CHECK_OK(directory_.WriteTouch({.path = "x", .stamp = StampNow(clock_)}));
    }
    CHECK_OK((*recorder)->Observe(StepExit{0, "finished"}));
    CHECK_OK((*recorder)->SyncIfDue().status());
    std::vector<std::string> rules;
    const absl::StatusOr<std::vector<v1::RunEvent>> events = (*recorder)->spool()->Read(1, {});
    CHECK_OK(events.status());
    for (const v1::RunEvent& event : *events)
      if (event.finding().rule() == "R-TIM-004") rules.push_back(event.finding().found());
    return rules;
  }

  RunFixture run_;
  const RunDirectory directory_;
  const std::string stage_ = run_.dir.Path("stage/r-1-g1");
  const std::string copy_ = JoinPath(stage_, "train/a.bin");
  testing::FakeClock clock_;
};

TEST_F(StageCheckTest, CopiesOnStorageAloneAreFine) {
  Stage(copy_, Leaves::kCold);
  EXPECT_EQ(Check(), std::nullopt);
}

TEST_F(StageCheckTest, CopiesThatAreOnNoStorageYetAreTold) {
  Stage(copy_, Leaves::kUnwritten);
  const std::optional<NodeFault> fault = Check(absl::Seconds(1));
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->rule, "R-TIM-004");
  EXPECT_THAT(fault->found, AllOf(HasSubstr("not on storage yet"), HasSubstr(copy_)));
}

TEST_F(StageCheckTest, CopiesThatStayInMemoryAreTold) {
  Stage(copy_, Leaves::kWarm);
  const std::optional<NodeFault> fault = Check();
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(fault->found, HasSubstr("24 MiB were in memory 0.000 s after the clock had started"));
}

TEST_F(StageCheckTest, WhatCanHaveBeenReadByThenAccusesNobody) {
  Stage(copy_, Leaves::kWarm);
  EXPECT_EQ(Check(absl::Milliseconds(2)), std::nullopt);
  EXPECT_EQ(Check(absl::Seconds(11)), std::nullopt);
}

TEST_F(StageCheckTest, OfASampleTheWholeIsEstimated) {
  Residency residency{.file_count = 1000, .checked_files = 10};
  residency.resident = {{"/stage/a", 2560}};
  residency.pages.resident = 2560;  // 10 MiB with pages of 4 KiB
  EXPECT_THAT(WhyStageIsWarm(residency, absl::ZeroDuration()),
              HasSubstr("10 of 1000 copies looked at"));
  residency.file_count = 10;
  EXPECT_EQ(WhyStageIsWarm(residency, absl::ZeroDuration()), "");
}

TEST_F(StageCheckTest, CopiesOnTmpfsAreInMemory) {
  const absl::StatusOr<FileSystem> memory = FileSystemOf("/dev/shm");
  if (!memory.ok() || memory->type != "tmpfs") GTEST_SKIP() << "no tmpfs at /dev/shm";
  const std::optional<NodeFault> fault = CheckStage({"/dev/shm"}, clock_.Wall(), clock_);
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(fault->found, HasSubstr("tmpfs, which is memory"));
}

TEST_F(StageCheckTest, TheAgentLooksWhenTheClockStarts) {
  Stage(copy_, Leaves::kUnwritten);
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("node 0: ")));
}

TEST_F(StageCheckTest, OnOtherNodesItLooksAtTheFirstTouch) {
  run_.spec.set_node_count(2);
  run_.spec.set_node_rank(1);
  Stage(copy_, Leaves::kUnwritten);
  EXPECT_THAT(Findings(), ElementsAre(HasSubstr("node 1: ")));
}

TEST_F(StageCheckTest, WhereStagingIsOnTheClockMemoryIsAllowed) {
  run_.spec.set_is_staging_timed(true);
  Stage(copy_, Leaves::kUnwritten);
  EXPECT_THAT(Findings(), IsEmpty());
}

}  // namespace
}  // namespace assay::agent
