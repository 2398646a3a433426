// When a program's initialisation is over its limit, by invented arrivals.

#include "worker/agent/init_time.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace assay::agent {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(30);

Stamp At(int64_t minute) {
  return {.wall_us = absl::ToUnixMicros(absl::FromUnixSeconds(1'700'000'000)) +
                     minute * absl::ToInt64Microseconds(absl::Minutes(1)),
          .mono_ns = minute * absl::ToInt64Nanoseconds(absl::Minutes(1))};
}

MonoTime Mono(int64_t minute) {
  return MonoTime{At(minute).mono_ns};
}

TEST(InitTimeTest, RunsFromTheFirstInitStartToRunStart) {
  InitTime init;
  EXPECT_EQ(init.EndOf(kLimit), std::nullopt) << "a program may load before it logs";
  init.Take("init_start", At(10));
  init.Take("init_start", At(20));  // of another rank
  EXPECT_EQ(init.EndOf(kLimit), Mono(40));
  EXPECT_EQ(init.Begin(), absl::FromUnixMicros(At(10).wall_us));
  init.Take("run_start", At(39));
  EXPECT_EQ(init.EndOf(kLimit), std::nullopt);
  EXPECT_EQ(init.Begin(), std::nullopt);
}

TEST(InitTimeTest, WhatIsStagedBeforeTheClockDoesNotCount) {
  InitTime init;
  init.Take("init_start", At(0));
  init.Take("staging_start", At(5));
  EXPECT_EQ(init.EndOf(kLimit), std::nullopt);
  init.Take("staging_start", At(6));
  init.Take("staging_stop", At(45));
  init.Take("staging_stop", At(46));
  EXPECT_EQ(init.EndOf(kLimit), Mono(70));
}

TEST(InitTimeTest, WhatIsStagedBeforeItBeganIsNoPartOfIt) {
  InitTime init;
  init.Take("staging_start", At(0));
  init.Take("init_start", At(5));
  init.Take("staging_stop", At(8));
  EXPECT_EQ(init.EndOf(kLimit), Mono(38));
}

}  // namespace
}  // namespace assay::agent
