#include "server/api/web_codes.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/fake_clock.h"

namespace assay::api {
namespace {

using assay::testing::FakeClock;
using ::testing::Eq;
using ::testing::Optional;

const auth::Identity kAlice{.principal = "alice",
                            .role = auth::Role::kSubmitter,
                            .organization = "CSCS",
                            .token_sha256 = "ab12"};

class WebCodesTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  WebCodes codes_{&clock_};
};

TEST_F(WebCodesTest, ACodeStandsForItsMakerOnce) {
  const std::string code = codes_.Create(kAlice);

  EXPECT_EQ(code.size(), 32u) << "160 bits in base32";
  EXPECT_FALSE(absl::StartsWith(code, "assay_"));
  EXPECT_THAT(codes_.Redeem(code), Optional(Eq(kAlice)));
  EXPECT_EQ(codes_.Redeem(code), std::nullopt);
  EXPECT_EQ(codes_.Redeem(""), std::nullopt);
  EXPECT_EQ(codes_.Redeem("unknown"), std::nullopt);
}

TEST_F(WebCodesTest, ACodeWorksForAMinute) {
  const std::string in_time = codes_.Create(kAlice);
  const std::string late = codes_.Create(kAlice);

  clock_.Advance(absl::Seconds(60));
  EXPECT_THAT(codes_.Redeem(in_time), Optional(Eq(kAlice)));
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(codes_.Redeem(late), std::nullopt);
}

TEST_F(WebCodesTest, AClockThatIsSetBackProlongsNone) {
  const std::string code = codes_.Create(kAlice);

  clock_.StepWall(-absl::Hours(1));
  clock_.Advance(absl::Seconds(61));

  EXPECT_EQ(codes_.Redeem(code), std::nullopt);
}

TEST_F(WebCodesTest, OfOnePersonTheOldestGoes) {
  const std::string bobs = codes_.Create({.principal = "bob", .role = auth::Role::kReviewer});
  const std::string first = codes_.Create(kAlice);
  for (size_t i = 0; i < WebCodes::kOfPrincipalMax; ++i)
    codes_.Create(kAlice);

  EXPECT_EQ(codes_.Redeem(first), std::nullopt);
  EXPECT_NE(codes_.Redeem(bobs), std::nullopt);
}

TEST_F(WebCodesTest, TheirNumberIsBounded) {
  const std::string first = codes_.Create(kAlice);
  for (size_t i = 0; i < WebCodes::kAllMax; ++i)
    codes_.Create({.principal = absl::StrCat("p-", i), .role = auth::Role::kReviewer});

  EXPECT_EQ(codes_.Redeem(first), std::nullopt);
}

}  // namespace
}  // namespace assay::api
