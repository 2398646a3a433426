// What a step does when its dataset is still in memory after the reset.

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/sidecar.h"
#include "tests/worker/agent/step_fixture.h"
#include "worker/agent/other_runs.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::IsOkAndHolds;

class ColdStepTest : public StepFixture {
 protected:
  void SetUp() override {
    ASSERT_THAT(OtherSteps(geteuid()), IsEmpty())
        << "they excuse data in memory: end the other runs on this machine first";
  }
};

TEST_F(ColdStepTest, AClosedRunWithDataInMemoryDoesNotStart) {
  run_.spec.set_division("closed");
  run_.Trainer("touch " + run_.dir.Path("ran"));
  const Sidecar sidecar(run_.dir.Path("dataset/train/a.bin"), Keeps::kMapped);

  const StepExit exit = Run();

  EXPECT_EQ(exit.code, static_cast<int>(ExitCode::kNodeFailed));
  EXPECT_THAT(exit.reason,
              AllOf(HasSubstr("1 pages"), HasSubstr(run_.dir.Path("dataset/train/a.bin")),
                    HasSubstr(absl::StrCat("(pid ", sidecar.pid())), HasSubstr("end what holds")));
  EXPECT_FALSE(FileExists(run_.dir.Path("ran")));
  EXPECT_FALSE(FileExists(directory_.ResultPath(3))) << "no log says that caches were cleared";
}

TEST_F(ColdStepTest, AnOpenRunStartsWithAFinding) {
  run_.spec.set_division("open");
  const Sidecar sidecar(run_.dir.Path("dataset/train/a.bin"), Keeps::kMapped);

  EXPECT_EQ(Run().code, 0);

  const absl::StatusOr<std::vector<NodeFault>> faults =
      directory_.ReadFaults(directory_.MemoryPath());
  ASSERT_THAT(faults, IsOk());
  ASSERT_EQ(faults->size(), 1U);
  EXPECT_EQ((*faults)[0].rule, "R-TIM-005");
  EXPECT_THAT((*faults)[0].found, HasSubstr(absl::StrCat("(pid ", sidecar.pid())));
  EXPECT_THAT(ReadFile(directory_.CachesPath()),
              IsOkAndHolds(AllOf(HasSubstr("\"coldness\": \"warm\""), HasSubstr("\"holders\": [{"),
                                 HasSubstr("\"tries\": 2"))));
}

TEST_F(ColdStepTest, TheRecordSaysHowItIsKnown) {
  EXPECT_EQ(Run().code, 0);
  EXPECT_THAT(ReadFile(directory_.CachesPath()),
              IsOkAndHolds(AllOf(HasSubstr("\"coldness\": \"cold\""),
                                 HasSubstr("\"checked_files\": 2"), HasSubstr("\"file_system\": "),
                                 HasSubstr("\"not_known\": ["), HasSubstr("\"seed\": \""))));
  EXPECT_FALSE(FileExists(directory_.MemoryPath()));
}

}  // namespace
}  // namespace assay::agent
