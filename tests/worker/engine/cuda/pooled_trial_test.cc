#include "worker/engine/backends/cuda/pooled_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/host_device.h"

namespace assay::cuda {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

TEST(PooledTrialTest, ALibraryThatSaysWhatWeDoIsTaken) {
  HostDevice device;

  EXPECT_THAT(TryPooledBlock(&device), IsOk());
}

TEST(PooledTrialTest, PlacesThatAreNumberedOtherwiseAreFound) {
  HostDevice device;
  device.set_turns_places(true);

  EXPECT_THAT(TryPooledBlock(&device),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at place")));
}

TEST(PooledTrialTest, ALibraryWithoutTheBlockIsNotTaken) {
  HostDevice device;
  device.set_refuses_epilogues(true);

  EXPECT_THAT(TryPooledBlock(&device), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::cuda
