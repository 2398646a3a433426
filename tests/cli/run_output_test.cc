// `assay logs --stderr`: what the processes of a run printed.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::HasSubstr;

TEST(RunOutputTest, OneRanksOrAllWithTheirNames) {
  testing::FakeCoordinator coordinator;
  coordinator.Start();
  testing::Invocation run;
  run.env.variables["ASSAY_SOCKET"] = coordinator.socket_path();
  EXPECT_EQ(run.Run("logs r-1 --stderr"), ExitStatus::kNotFound);
  EXPECT_THAT(run.err, HasSubstr("r-1 has kept nothing that its processes printed"));

  coordinator.AddArtifact("trainer_0.out", "mean 0.3\n");
  coordinator.AddArtifact("trainer_1.out", "cannot open x.tfrecord");
  EXPECT_EQ(run.Run("logs r-1 --stderr --rank 1"), ExitStatus::kDone) << run.err;
  EXPECT_EQ(run.out, "cannot open x.tfrecord");
  EXPECT_EQ(run.Run("logs r-1 --stderr"), ExitStatus::kDone) << run.err;
  EXPECT_EQ(run.out,
            "==> trainer_0.out <==\nmean 0.3\n==> trainer_1.out <==\ncannot open x.tfrecord\n");
  EXPECT_EQ(run.Run("logs r-1 --stderr --rank 2"), ExitStatus::kNotFound);
  EXPECT_THAT(run.err, HasSubstr("rank 2 of r-1 has no output of its own; there are "
                                 "trainer_0.out, trainer_1.out"));
  EXPECT_EQ(run.Run("logs r-1 --rank 1"), ExitStatus::kUsage);
}

}  // namespace
}  // namespace assay
