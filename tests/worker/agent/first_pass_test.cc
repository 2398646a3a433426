// What a step leaves of the bytes that its ranks read, and what is made of it: the real kernel's
// counters, a real dataset on a disk, programs that read it and programs that do not.

#include "common/telemetry/first_pass.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/telemetry/bytes.h"
#include "common/telemetry/run_phases.h"
#include "common/telemetry/series.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/step_fixture.h"
#include "worker/agent/file_system.h"

namespace assay::agent {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;

constexpr int kMegabytes = 96;

class FirstPassStepTest : public StepFixture {
 protected:
  void SetUp() override {
    const absl::StatusOr<FileSystem> file_system = FileSystemOf(run_.dir.path());
    ASSERT_THAT(file_system, IsOk());
    if (file_system->type != "ext4" && file_system->type != "xfs")
      GTEST_SKIP() << "temporary files lie on " << file_system->type;
    std::ofstream file(run_.dir.Path("dataset/train/a.bin"), std::ios::binary);
    for (int i = 0; i < kMegabytes; ++i)
      file << std::string(1'000'000, static_cast<char>('a' + i % 20));
  }

  // A trainer that reads `path` in each of two epochs.
  void Reads(const std::string& path) {
    run_.Trainer(absl::StrCat(
        "line() { echo \":::MLLOG {\\\"namespace\\\": \\\"\\\", \\\"time_ms\\\": $(date +%s%3N), "
        "\\\"event_type\\\": \\\"POINT_IN_TIME\\\", \\\"key\\\": \\\"$1\\\", \\\"value\\\": null, "
        "\\\"metadata\\\": {}}\" >> $LOG; }\n"
        "line run_start\nline epoch_start\ncat ",
        path, " > /dev/null\nline epoch_stop\nsleep 1.2\nline epoch_start\ncat ", path,
        " > /dev/null\nline epoch_stop\nline run_stop"));
  }

  struct Outcome {
    telemetry::FirstPass pass;
    std::vector<telemetry::PhaseBytes> parts;
  };
  Outcome RunIt() {
    EXPECT_EQ(Run().code, 0);
    const telemetry::RunPhases phases =
        telemetry::PhasesOf(ReadFile(directory_.ResultPath(3)).value_or(""));
    const absl::StatusOr<telemetry::Series> series =
        telemetry::ReadSeries(ReadFile(directory_.TelemetryPath()).value_or(""));
    EXPECT_THAT(series, IsOk());
    const telemetry::NodePass node =
        telemetry::NodePassOf(0, phases, &*series, ReadFile(directory_.CachesPath()).value_or(""));
    return {telemetry::FirstPassOf(phases, std::span(&node, 1), 1, std::nullopt),
            telemetry::BytesByPhase(telemetry::NodeBytes(&*series), phases)};
  }
};

TEST_F(FirstPassStepTest, TheDatasetIsReadOnceAndThenFromMemory) {
  Reads("$DATA/train/a.bin");

  const Outcome outcome = RunIt();

  EXPECT_EQ(outcome.pass.unknown, "");
  EXPECT_TRUE(outcome.pass.is_cold_proven);
  EXPECT_NEAR(outcome.pass.needed_bytes, kMegabytes * 1e6, 1);
  EXPECT_FALSE(outcome.pass.IsShort()) << outcome.pass.Sentence();
  ASSERT_FALSE(outcome.parts.empty());
  EXPECT_EQ(outcome.parts.back().phase, "epoch 2");
  EXPECT_LT(outcome.parts.back().read.run.value_or(1e9), 5e6) << "the page cache had it";
}

// The adversary of the witness's specification, section 10.
TEST_F(FirstPassStepTest, ACopyInMemoryIsNoFirstPass) {
  const UniqueFd copy(memfd_create("copy", 0));  // a tmpfs file, which no reset empties
  ASSERT_THAT(WriteAll(copy.get(), std::string(kMegabytes * 1'000'000, 'x')), IsOk());
  Reads(absl::StrCat("/proc/", getpid(), "/fd/", copy.get()));

  const Outcome outcome = RunIt();

  EXPECT_EQ(outcome.pass.unknown, "");
  EXPECT_TRUE(outcome.pass.IsShort()) << outcome.pass.Sentence();
  EXPECT_TRUE(outcome.pass.IsUnexplained()) << outcome.pass.Sentence();
}

// Where the step cannot read what ranks of another account have read, the node's disks tell.
TEST_F(FirstPassStepTest, RanksOfAnotherAccountAreSeenByTheDisks) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give ranks an account of their own";
  UseAccounts();
  Reads("$DATA/train/a.bin");

  const Outcome outcome = RunIt();

  EXPECT_EQ(outcome.pass.unknown, "");
  EXPECT_FALSE(outcome.pass.IsShort()) << outcome.pass.Sentence();
}

}  // namespace
}  // namespace assay::agent
