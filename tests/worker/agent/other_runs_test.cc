#include "worker/agent/other_runs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/await_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/step_fixture.h"

namespace assay::agent {
namespace {

using testing::IsOk;

class OtherRunsTest : public StepFixture {};

TEST_F(OtherRunsTest, AStepIsOneAsLongAsItLives) {
  const std::string pipe = run_.dir.Path("ready");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  run_.Trainer("echo > " + pipe + "; until [ -e " + run_.dir.Path("go") +
               " ]; do sleep 0.01; done");
  EXPECT_FALSE(IsStepOfRun(getpid(), geteuid()));
  const ProcessId step = Start();
  testing::AwaitWriter(pipe);

  EXPECT_TRUE(IsStepOfRun(step.pid, geteuid()));
  EXPECT_THAT(OtherSteps(geteuid()), ::testing::Contains(step.pid));

  CHECK_OK(WriteFileAtomic(run_.dir.Path("go"), ""));
  EXPECT_EQ(Finish(step).code, 0);
  EXPECT_FALSE(IsStepOfRun(step.pid, geteuid()));
}

// A trainer that has the step's program started outside of its run, by a service of the node say,
// in a directory of its own making: what reads below it is no other run.
TEST_F(OtherRunsTest, AFakeStepThatReadsEarlyIsSeen) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has fanotify, and files of another account";
  const std::string pipe = run_.dir.Path("ready");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  run_.spec.set_run_timeout_ms(10'000);
  run_.Trainer("echo > " + pipe + "; until [ -e " + directory_.ObservedTouchPath() +
               " ]; do sleep 0.01; done");
  RunFixture fake;
  const std::string seen = directory_.ObservedTouchPath();
  fake.spec.mutable_dataset()->set_path(run_.dir.Path("dataset"));
  fake.Trainer("read x < " + run_.dir.Path("dataset/train/a.bin") + "; until [ -e " + seen +
               " -o -e " + directory_.ExitPath() + " ]; do sleep 0.01; done");
  const RunDirectory forged = *RunDirectory::ForRun(fake.worker.data_directory(), fake.key);
  ASSERT_THAT(PrepareRun(forged, fake.spec, fake.worker, "{}"), IsOk());
  ASSERT_EQ(chown(forged.path().c_str(), 65534, 65534), 0);
  const ProcessId step = Start();
  testing::AwaitWriter(pipe);

  ASSERT_EQ(system(("setsid " STEP_RUNNER " step " + forged.path() + " &").c_str()), 0);

  EXPECT_EQ(Finish(step).code, 0);
  const absl::StatusOr<Touch> touch = directory_.ReadTouch(seen);
  ASSERT_THAT(touch, IsOk());
  EXPECT_EQ(touch->path, run_.dir.Path("dataset/train/a.bin"));
  while (!FileExists(forged.ExitPath())) {
  }
}

}  // namespace
}  // namespace assay::agent
