#include "common/client/resource_json.h"

#include "gtest/gtest.h"

namespace assay::client {
namespace {

TEST(ResourceJsonTest, WhatIsNotKnownYetIsAbsent) {
  v1::Run run;
  run.set_name("runs/r-7");
  run.set_submission("submissions/e-3");
  run.set_state(v1::Run::RUNNING);

  const Json json = RunJson(run);

  EXPECT_EQ(json.dump(), R"({"id":"r-7","entry":"e-3","state":"running"})");
  EXPECT_FALSE(TimeToSolutionSeconds(run).has_value());
  run.set_run_start_ms(1000);
  run.set_run_stop_ms(3500);
  EXPECT_EQ(RunJson(run)["seconds"], 2.5);
}

TEST(ResourceJsonTest, AStateNewerThanThisProgramIsUnknown) {
  EXPECT_EQ(StateText(static_cast<v1::Run::State>(99)), "unknown");
  EXPECT_EQ(StateText(v1::Submission::VALID), "valid");
}

TEST(ResourceJsonTest, TimesAreInUtcWithMicroseconds) {
  google::protobuf::Timestamp time;
  EXPECT_EQ(TimeText(time), "");
  time.set_seconds(1);
  time.set_nanos(2500);
  EXPECT_EQ(TimeText(time), "1970-01-01T00:00:01.000002Z");
}

}  // namespace
}  // namespace assay::client
