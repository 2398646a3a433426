// What the doctor says of a coordinator's nodes.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DoctorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
    for (v1::Worker& worker : coordinator_.workers)
      worker.set_version("9.9.9");  // as the coordinator
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(DoctorTest, NodesThatAreWellAreCounted) {
  run_.Run("doctor --json");
  EXPECT_THAT(run_.out, AllOf(HasSubstr("2, none is silent"), HasSubstr("all 9.9.9")));
}

TEST_F(DoctorTest, NodesThatAreNotAreNamed) {
  coordinator_.workers[0].set_state(v1::Worker::LOST);
  coordinator_.workers[1].set_version("9.9.8");
  coordinator_.workers[1].set_clock_offset_us(-51'000);

  run_.Run("doctor --json");
  EXPECT_THAT(run_.out, AllOf(HasSubstr("1 of 2 silent: w0"),
                              HasSubstr("the coordinator has 9.9.9, w1 has 9.9.8"),
                              HasSubstr("largest offset 51.00 ms (w1)")));
}

// What has signed off is no node any more, and who does not say a version has no other.
TEST_F(DoctorTest, WhatIsGoneOrUntoldIsNoComplaint) {
  coordinator_.workers[0].set_state(v1::Worker::GONE);
  coordinator_.workers[0].set_version("0.0.1");
  coordinator_.workers[1].clear_version();

  run_.Run("doctor --json");
  EXPECT_THAT(run_.out, AllOf(HasSubstr("1, none is silent"), Not(HasSubstr("0.0.1")),
                              HasSubstr("all 9.9.9")));
}

TEST_F(DoctorTest, OfManyTheFirstAreNamed) {
  coordinator_.workers.resize(2);
  for (int i = 2; i < 7; ++i) {
    coordinator_.workers.push_back(coordinator_.workers[0]);
    coordinator_.workers.back().set_name("workers/w" + std::to_string(i));
  }
  for (v1::Worker& worker : coordinator_.workers)
    worker.set_state(v1::Worker::SUSPECT);

  run_.Run("doctor --json");
  EXPECT_THAT(run_.out, HasSubstr("7 of 7 silent: w0, w1, w2 and 4 more"));
}

}  // namespace
}  // namespace assay::cli
