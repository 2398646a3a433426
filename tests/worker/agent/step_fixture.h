// A run whose step is a process of its own, for tests of what steps do.

#ifndef TESTS_WORKER_AGENT_STEP_FIXTURE_H_
#define TESTS_WORKER_AGENT_STEP_FIXTURE_H_

#include <sys/stat.h>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/process.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/account.h"
#include "worker/agent/run_directory.h"
#include "worker/agent/step_process.h"

namespace assay::agent {

class StepFixture : public ::testing::Test {
 protected:
  StepFixture() : directory_(*RunDirectory::ForRun(run_.worker.data_directory(), run_.key)) {}
  // As the agent does for steps that gave their rights up.
  ~StepFixture() override { EndRunGroup(directory_); }

  ProcessId Start() {
    CHECK_OK(PrepareRun(directory_, run_.spec, run_.worker, "{}"));
    const absl::StatusOr<ProcessId> step = StartStepProcess(directory_, STEP_RUNNER);
    CHECK_OK(step.status());
    return *step;
  }
  // Waits for the end of the step; fails the test if it leaves none.
  StepExit Finish(const ProcessId& step) {
    EXPECT_THAT(WaitForExit(step, kPatience), testing::IsOk());
    const absl::StatusOr<StepExit> exit = directory_.ReadExit();
    EXPECT_THAT(exit, testing::IsOk());
    return exit.ok() ? *exit : StepExit{-1, "no exit"};
  }
  StepExit Run() { return Finish(Start()); }
  // Gives ranks and steps accounts of their own, and lets these pass. Only root can.
  void UseAccounts() {
    for (const char* path : {"", "dataset", "dataset/train", "dataset/validation", "data", "stage"})
      ASSERT_EQ(chmod(run_.dir.Path(path).c_str(), 0755), 0) << path;
    ASSERT_EQ(chmod(run_.dir.Path("dataset/train/a.bin").c_str(), 0644), 0);
    run_.worker.set_run_user("nobody");
    run_.worker.set_step_user("daemon");
    ASSERT_THAT(CloseDataDirectory(run_.worker, *FindRunUser(run_.worker)), testing::IsOk());
  }

  RunFixture run_;
  const RunDirectory directory_;
};

}  // namespace assay::agent

#endif  // TESTS_WORKER_AGENT_STEP_FIXTURE_H_
