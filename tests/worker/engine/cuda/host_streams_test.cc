// The fake itself: it must show what a GPU would do to who forgets to wait.

#include <gtest/gtest.h>

#include "tests/worker/engine/cuda/host_device.h"

namespace assay::cuda {
namespace {

class HostDeviceStreamsTest : public ::testing::Test {
 protected:
  // A copy within the device, as a call.
  void Take() {
    ASSERT_TRUE(
        device_.Issue(CopyCall{.from = &staging_, .to = &taken_, .bytes = sizeof(int)}).ok());
  }
  void StartCopy(const int& number) {
    ASSERT_TRUE(device_.CopyAsync(&number, &staging_, sizeof(int)).ok());
  }
  int Taken() {
    int number = 0;
    EXPECT_TRUE(device_.CopyOut(&taken_, &number, sizeof(int)).ok());
    return number;
  }

  HostDevice device_;
  int staging_ = 0, taken_ = 0;
  const int first_ = 1, second_ = 2;
};

TEST_F(HostDeviceStreamsTest, CallsSeeACopyOnlyIfTheyWaitForIt) {
  device_.set_late(/*calls=*/false, /*copies=*/true);
  StartCopy(first_);
  Take();
  EXPECT_EQ(Taken(), 0);

  ASSERT_TRUE(device_.MakeCallsWaitForCopies().ok());
  Take();
  EXPECT_EQ(Taken(), 1);
}

TEST_F(HostDeviceStreamsTest, ACopyThatDoesNotWaitOverwritesWhatCallsStillRead) {
  device_.set_late(/*calls=*/true, /*copies=*/false);
  StartCopy(first_);
  ASSERT_TRUE(device_.MakeCallsWaitForCopies().ok());
  Take();
  StartCopy(second_);
  EXPECT_EQ(Taken(), 2);

  StartCopy(first_);
  Take();
  ASSERT_TRUE(device_.MakeCopiesWaitForCalls().ok());
  StartCopy(second_);
  EXPECT_EQ(Taken(), 1);
}

TEST_F(HostDeviceStreamsTest, TheHostMayWaitForBothStreams) {
  device_.set_late(/*calls=*/true, /*copies=*/true);
  StartCopy(first_);
  EXPECT_EQ(staging_, 0);
  ASSERT_TRUE(device_.WaitForCopies().ok());
  EXPECT_EQ(staging_, 1);
  Take();
  EXPECT_EQ(taken_, 0);
  ASSERT_TRUE(device_.Wait().ok());
  EXPECT_EQ(taken_, 1);
}

}  // namespace
}  // namespace assay::cuda
