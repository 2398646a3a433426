#include "server/api/refusal_log.h"

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

}  // namespace
}  // namespace assay::api
