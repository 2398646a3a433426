#include "server/api/refusal_log.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/fake_clock.h"

namespace assay::api {
namespace {

using assay::testing::FakeClock;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kMethod[] = "assay.v1.AdminService/ListTokens";
const absl::Status kUnknown = absl::UnauthenticatedError("unknown token");

TEST(RefusalLogTest, SaysWhoWasRefusedAndWhy) {
  FakeClock clock;
  RefusalLog log(&clock);

  EXPECT_THAT(log.Note("ipv4:10.0.0.9:4242", kMethod, kUnknown),
              AllOf(HasSubstr("10.0.0.9:4242"), HasSubstr(kMethod), HasSubstr("unknown token")));
  EXPECT_THAT(log.Note("unix:", kMethod, absl::PermissionDeniedError("a \n \x1b role")),
              AllOf(Not(HasSubstr("\n")), HasSubstr("\\x1b")));
  EXPECT_EQ(log.count(), 2);
  EXPECT_EQ(log.count(absl::StatusCode::kUnauthenticated), 1);
  EXPECT_EQ(log.count(absl::StatusCode::kPermissionDenied), 1);
}

TEST(RefusalLogTest, OtherErrorsAreNotAboutTheCaller) {
  FakeClock clock;
  RefusalLog log(&clock);

  EXPECT_THAT(log.Note("p", kMethod, absl::InvalidArgumentError("x")), IsEmpty());
  EXPECT_EQ(log.count(), 0);
}

TEST(RefusalLogTest, AFloodIsCountedAndNotWritten) {
  FakeClock clock;
  RefusalLog log(&clock);
  int line_count = 0;
  for (int i = 0; i < 1000; ++i)
    line_count += log.Note("p", kMethod, kUnknown).empty() ? 0 : 1;

  EXPECT_EQ(line_count, RefusalLog::kLinesMax);
  EXPECT_EQ(log.count(), 1000);
  clock.Advance(absl::Seconds(10));
  EXPECT_THAT(log.Note("p", kMethod, kUnknown),
              AllOf(HasSubstr("untold=980"), HasSubstr("total=1001")));
}

TEST(RefusalLogTest, CallsOfOneKindAreCollectedTogether) {
  FakeClock clock;
  RefusalLog log(&clock);
  const auth::Identity mallory{.principal = "mallory", .role = auth::Role::kSubmitter};
  const absl::Status denied = absl::PermissionDeniedError("mallory is submitter");
  log.Note("ipv4:10.0.0.9:4242", kMethod, denied, &mallory);
  log.Note("ipv4:10.0.0.9:4243", kMethod, denied, &mallory);
  log.Note("ipv4:10.0.0.9:4244", kMethod, kUnknown);

  const core::RefusedCalls unknown{.peer = "ipv4:10.0.0.9",
                                   .method = kMethod,
                                   .reason = "unknown token",
                                   .count = 1,
                                   .first_us = absl::ToUnixMicros(clock.Wall())};
  core::RefusedCalls of_mallory = unknown;
  of_mallory.principal = "mallory";
  of_mallory.reason = "mallory is submitter";
  of_mallory.count = 2;
  EXPECT_THAT(log.Take(), UnorderedElementsAre(unknown, of_mallory));
  EXPECT_THAT(log.Take(), IsEmpty()) << "taken once";
}

TEST(RefusalLogTest, WhatThePublicMayNotDoIsNotCollected) {
  FakeClock clock;
  RefusalLog log(&clock);
  const auth::Identity visitor{.principal = "web", .role = auth::Role::kPublic};
  EXPECT_THAT(log.Note("p", kMethod, absl::PermissionDeniedError("web is public"), &visitor),
              HasSubstr("web is public"));
  EXPECT_THAT(log.Take(), IsEmpty());
}

TEST(RefusalLogTest, AFloodOfKindsIsCollectedInAFewRows) {
  FakeClock clock;
  RefusalLog log(&clock);
  for (int i = 0; i < 1000; ++i)
    log.Note(absl::StrCat("ipv4:10.0.", i / 250, ".", i % 250, ":1"), std::string(9999, '\x01'),
             kUnknown);

  const std::vector<core::RefusedCalls> taken = log.Take();
  EXPECT_THAT(taken, SizeIs(RefusalLog::kKindsMax + 1));
  int64_t count = 0;
  for (const core::RefusedCalls& calls : taken) {
    count += calls.count;
    EXPECT_LE(calls.method.size(), core::kRefusedTextBytesMax);
  }
  EXPECT_EQ(count, 1000);
}

}  // namespace
}  // namespace assay::api
