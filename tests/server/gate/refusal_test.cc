#include "server/gate/refusal.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::gate {
namespace {

using assay::testing::IsOkAndHolds;
using assay::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// SETTINGS without content; then the header of HEADERS with 5 bytes on stream 1.
const std::string kSettings("\0\0\0\4\0\0\0\0\0", 9);
const std::string kHeaders("\0\0\5\1\5\0\0\0\1", 9);

TEST(RefusalTest, SaysNothingUntilACallComes) {
  Refusal refusal(absl::UnauthenticatedError("the token was revoked"));
  EXPECT_THAT(refusal.Answer(kClientPreface), IsOkAndHolds(""));
  EXPECT_THAT(refusal.Answer(kSettings), IsOkAndHolds(""));
  EXPECT_THAT(refusal.Answer(kHeaders),
              IsOkAndHolds(AllOf(HasSubstr("grpc-status"), HasSubstr("the token was revoked"))));
}

TEST(RefusalTest, WhatIsNotPrintableIsEscaped) {
  Refusal refusal(absl::UnauthenticatedError("no\nway: 100 %"));
  static_cast<void>(refusal.Answer(kClientPreface));
  EXPECT_THAT(refusal.Answer(kHeaders), IsOkAndHolds(HasSubstr("no%0Away: 100 %25")));
}

TEST(RefusalTest, WhatIsNotHttp2IsNotAnswered) {
  Refusal refusal(absl::UnauthenticatedError("no"));
  EXPECT_THAT(refusal.Answer("GET / HTTP/1.1\r\n\r\n"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::gate
