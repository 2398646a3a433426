#include "server/auth/authenticator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::auth {
namespace {

using assay::testing::IsOkAndHolds;
using assay::testing::StatusIs;
using ::testing::HasSubstr;

const Identity kAlice = {.principal = "alice", .role = Role::kSubmitter, .organization = "fjord"};
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

Authenticator MakeAuthenticator() {
  return Authenticator(/*daemon_user=*/990, {{.uid = 1000, .identity = kAlice}});
}

TEST(AuthenticatorTest, RootAndTheDaemonsUserAreOperators) {
  const Authenticator auth = MakeAuthenticator();
  EXPECT_THAT(auth.FromConnection({.user = 0}),
              IsOkAndHolds(Identity{.principal = "root", .role = Role::kOperator}));
  EXPECT_THAT(auth.FromConnection({.user = 990}),
              IsOkAndHolds(Identity{.principal = "uid-990", .role = Role::kOperator}));
}

TEST(AuthenticatorTest, OtherLocalUsersAreWhatTheConfigurationSaysOrNobody) {
  const Authenticator auth = MakeAuthenticator();
  EXPECT_THAT(auth.FromConnection({.user = 1000}), IsOkAndHolds(kAlice));
  EXPECT_THAT(auth.FromConnection({.user = 1001}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("local_users")));
}

TEST(AuthenticatorTest, TheConfigurationCannotDemoteRootOrTheDaemon) {
  const Authenticator auth(990, {{.uid = 0, .identity = kAlice}, {.uid = 990, .identity = kAlice}});
  EXPECT_EQ(auth.FromConnection({.user = 0})->role, Role::kOperator);
  EXPECT_EQ(auth.FromConnection({.user = 990})->role, Role::kOperator);
}

TEST(AuthenticatorTest, ACertificateMakesAWorkerOfThatName) {
  EXPECT_THAT(MakeAuthenticator().FromConnection({.certificate_common_name = "w0"}),
              IsOkAndHolds(Identity{.principal = "w0", .role = Role::kWorker}));
  const auto later = MakeAuthenticator().FromConnection(
      {.certificate_common_name = "w0", .certificate_generation = 3});
  EXPECT_EQ(later->certificate_generation, 3);
}

TEST(AuthenticatorTest, NothingShownIsAnonymous) {
  EXPECT_THAT(MakeAuthenticator().FromConnection({}), IsOkAndHolds(Identity{}));
}

TEST(AuthenticatorTest, ReadsBearerTokensAndNothingElse) {
  EXPECT_THAT(Authenticator::BearerToken(""), IsOkAndHolds(""));
  EXPECT_THAT(Authenticator::BearerToken("Bearer assay_x"), IsOkAndHolds("assay_x"));
  EXPECT_THAT(Authenticator::BearerToken("bearer assay_x "), IsOkAndHolds("assay_x"));
  for (const char* header : {"Basic dXNlcg==", "assay_x", "Bearer ", "Bearer a b", "Bearer \x01"}) {
    EXPECT_THAT(Authenticator::BearerToken(header), StatusIs(absl::StatusCode::kUnauthenticated))
        << header;
  }
  EXPECT_THAT(Authenticator::BearerToken("Bearer " + std::string(129, 'a')),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST(AuthenticatorTest, ATokenCountsUntilItExpiresOrIsRevoked) {
  const TokenRecord record = {.identity = kAlice, .expire_time = kNow + absl::Hours(1)};
  EXPECT_THAT(Authenticator::FromToken(record, kNow), IsOkAndHolds(kAlice));
  EXPECT_THAT(Authenticator::FromToken(record, kNow + absl::Hours(1)),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("2023-11-14T23:13:20")));
  EXPECT_THAT(Authenticator::FromToken(std::nullopt, kNow),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("unknown")));
  TokenRecord revoked = record;
  revoked.is_revoked = true;
  EXPECT_THAT(Authenticator::FromToken(revoked, kNow),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("revoked")));
}

TEST(AuthenticatorTest, RoleNamesGoBothWaysAndAnonymousCannotBeGiven) {
  for (const Role role : {Role::kSubmitter, Role::kReviewer, Role::kOperator, Role::kWorker})
    EXPECT_EQ(ParseRole(RoleName(role)), role);
  EXPECT_EQ(ParseRole("anonymous"), std::nullopt);
  EXPECT_EQ(ParseRole(""), std::nullopt);
  EXPECT_EQ(ParseRole("root"), std::nullopt);
}

}  // namespace
}  // namespace assay::auth
