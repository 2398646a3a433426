#include "common/process.h"

#include <signal.h>

#include <atomic>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/await_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;

constexpr absl::Duration kPatience = absl::Seconds(60);

SpawnOptions Shell(const std::string& script) {
  return SpawnOptions{.argv = {"/bin/sh", "-c", script}};
}

TEST(ProcessTest, ReportsTheExitCode) {
  const absl::StatusOr<ProcessId> child = Spawn(Shell("exit 7"));
  ASSERT_THAT(child, IsOk());
  EXPECT_THAT(WaitForExit(*child, kPatience), IsOkAndHolds(7));
}

TEST(ProcessTest, PassesEnvironmentDirectoryAndOutput) {
  const TempDir dir;
  SpawnOptions options = Shell("pwd; echo $GREETING; echo oops >&2");
  options.environment = {"GREETING=hello"};
  options.working_directory = dir.path();
  options.output_path = dir.Path("out");

  const absl::StatusOr<ProcessId> child = Spawn(options);
  ASSERT_THAT(child, IsOk());
  ASSERT_THAT(WaitForExit(*child, kPatience), IsOkAndHolds(0));

  EXPECT_THAT(ReadFile(dir.Path("out")), IsOkAndHolds(dir.path() + "\nhello\noops\n"));
}

TEST(ProcessTest, StoppingTheGroupKillsAChildThatIgnoresTerm) {
  const TempDir dir;
  const std::string ready = dir.Path("ready");
  const absl::StatusOr<ProcessId> child = Spawn(
      Shell("trap '' TERM; mkfifo " + ready + "; echo > " + ready + "; while :; do sleep 1; done"));
  ASSERT_THAT(child, IsOk());
  while (!FileExists(ready)) {
  }
  testing::AwaitWriter(ready);  // the trap is set once the pipe is written
  ASSERT_TRUE(IsRunning(*child));

  EXPECT_THAT(StopGroup(*child, absl::Milliseconds(50)), IsOkAndHolds(128 + SIGKILL));
  EXPECT_FALSE(IsRunning(*child));
}

TEST(ProcessTest, RunToEndSaysTheExitCodeAndStartsNothingOnceItIsStopped) {
  std::atomic<bool> is_stopped = false;
  EXPECT_THAT(RunToEnd(Shell("exit 7"), kPatience, is_stopped), IsOkAndHolds(7));
  is_stopped = true;
  EXPECT_THAT(RunToEnd(Shell("exit 7"), kPatience, is_stopped),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST(ProcessTest, AMissingProgramIsNamed) {
  EXPECT_THAT(Spawn(SpawnOptions{.argv = {"/no/such/program"}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/program")));
}

}  // namespace
}  // namespace assay
