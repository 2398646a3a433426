// Tokens, datasets and what the server says about itself.

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/core.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::Creation;
using core::testing::kInvalid;
using core::testing::kSecond;
using core::testing::SomeSpec;
using core::testing::SomeToken;
using core::testing::World;
using ::testing::HasSubstr;

TEST(TokenTest, AreCreatedOnceAndRevoked) {
  World world;

  const auto token = world.Do(SomeToken());
  EXPECT_EQ(std::get<Token>(*token).id, TokenId{1});
  EXPECT_THAT(world.Do(SomeToken()), StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("t-1")));
  EXPECT_THAT(world.Do(Creation(SomeSpec(), "t")), StatusIs(absl::StatusCode::kAlreadyExists));
  ASSERT_THAT(world.Do(RevokeToken{TokenId{1}}), IsOk());
  ASSERT_THAT(world.Do(RevokeToken{TokenId{1}}), IsOk());

  EXPECT_TRUE(world.state().tokens.at(TokenId{1}).is_revoked);
  EXPECT_THAT(world.Do(RevokeToken{TokenId{2}}), StatusIs(absl::StatusCode::kNotFound));
}

TEST(TokenTest, EndWithTheTokenThatTheyWereMadeBy) {
  World world;
  const auto make = [&world](const char* request, char secret, const std::string& made_by) {
    CreateToken token = SomeToken();
    token.request_id = request;
    token.secret_sha256 = std::string(64, secret);
    token.made_by_sha256 = made_by;
    return world.Do(token);
  };
  ASSERT_THAT(make("first", '1', ""), IsOk());
  ASSERT_THAT(make("session", '2', std::string(64, '1')), IsOk());
  ASSERT_THAT(make("session of the session", '3', std::string(64, '2')), IsOk());
  ASSERT_THAT(make("other", '4', ""), IsOk());

  ASSERT_THAT(world.Do(RevokeToken{TokenId{1}}), IsOk());

  const auto is_revoked = [&world](int64_t id) {
    return world.state().tokens.at(TokenId{id}).is_revoked;
  };
  EXPECT_TRUE(is_revoked(2));
  EXPECT_TRUE(is_revoked(3));
  EXPECT_FALSE(is_revoked(4));
  EXPECT_THAT(make("late", '5', std::string(64, '2')),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST(TokenTest, RefusesNonsense) {
  World world;
  CreateToken token = SomeToken();
  token.role = "king";
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.kind = TokenKind::kEnrol;
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.principal = "";
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.organization = "";
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.expires_at_us = 1;
  EXPECT_THAT(world.Do(token), StatusIs(kInvalid));
  token = SomeToken();
  token.secret_sha256 = "";
  EXPECT_THAT(world.Do(token), StatusIs(absl::StatusCode::kInternal));
}

TEST(TokenTest, EnrolsOneWorkerOnce) {
  World world;
  CreateToken token = SomeToken();
  token.kind = TokenKind::kEnrol;
  token.role = "worker";
  token.principal = "w1";
  ASSERT_THAT(world.Do(token), IsOk());
  const auto denied = StatusIs(absl::StatusCode::kPermissionDenied);

  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '2'), "w1"}), denied);
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '1'), "w2"}), denied);
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '1'), "w1"}), IsOk());
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '1'), "w1"}), denied);

  token.request_id = "u";
  token.secret_sha256 = std::string(64, '3');
  ASSERT_THAT(world.Do(token), IsOk());
  world.Wait(101 * kSecond);
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '3'), "w1"}), denied);
}

TEST(DatasetTest, AreAddedAndRemovedUnlessInUse) {
  World world;
  Dataset dataset = testing::SomeDataset();
  EXPECT_THAT(world.Do(AddDataset{dataset}), IsOk());
  dataset.path = "/other";
  EXPECT_THAT(world.Do(AddDataset{dataset}), StatusIs(absl::StatusCode::kAlreadyExists));
  dataset.id = "x";
  dataset.path = "relative";
  EXPECT_THAT(world.Do(AddDataset{dataset}), StatusIs(kInvalid));
  dataset.benchmark = "";
  EXPECT_THAT(world.Do(AddDataset{dataset}), StatusIs(kInvalid));
  const SubmissionId id = world.Submit();

  EXPECT_THAT(world.Do(RemoveDataset{"cosmo32"}), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(world.Do(CancelSubmission{id, ""}), IsOk());
  EXPECT_THAT(world.Do(RemoveDataset{"cosmo32"}), IsOk());
  EXPECT_THAT(world.Do(RemoveDataset{"cosmo32"}), StatusIs(absl::StatusCode::kNotFound));
}

TEST(ViewTest, AreKeptForTheirAuthor) {
  World world;
  const View view{.name = "fast", .kind = "run", .filter = "minutes<3"};
  const auto saved = world.Do(SaveView{view}, "ann");
  ASSERT_THAT(saved, IsOk());
  EXPECT_EQ(std::get<View>(*saved).author, "ann");
  EXPECT_GT(std::get<View>(*saved).saved_at_us, 0);
  // Another's of the same name is another; one's own is replaced.
  ASSERT_THAT(world.Do(SaveView{view}, "bob"), IsOk());
  View other = view;
  other.filter = "minutes<4";
  ASSERT_THAT(world.Do(SaveView{other}, "ann"), IsOk());
  EXPECT_EQ(world.state().views.size(), 2u);

  EXPECT_THAT(world.Do(RemoveView{"fast"}, "carl"), StatusIs(absl::StatusCode::kNotFound));
  const auto removed = world.Do(RemoveView{"fast"}, "ann");
  ASSERT_THAT(removed, IsOk());
  EXPECT_EQ(std::get<View>(*removed).filter, "minutes<4");
  EXPECT_THAT(world.Do(RemoveView{"fast"}, "ann"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(ViewTest, RefusesWhatNobodyCanAsk) {
  World world;
  EXPECT_THAT(world.Do(SaveView{{.name = "a b", .kind = "run"}}), StatusIs(kInvalid));
  EXPECT_THAT(world.Do(SaveView{{.name = "a", .kind = "table"}}), StatusIs(kInvalid));
  EXPECT_THAT(world.Do(SaveView{{.name = "a", .kind = "run", .filter = "minuts<3"}}),
              StatusIs(kInvalid, ::testing::HasSubstr("there is no field 'minuts'")));
  for (size_t i = 0; i < kViewCountMax; ++i)
    ASSERT_THAT(world.Do(SaveView{{.name = absl::StrCat("v", i), .kind = "run"}}), IsOk());
  EXPECT_THAT(world.Do(SaveView{{.name = "more", .kind = "run"}}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(world.Do(SaveView{{.name = "v7", .kind = "entry"}}), IsOk()) << "in its place";
  EXPECT_THAT(world.Do(SaveView{{.name = "more", .kind = "run"}}, "bob"), IsOk());
}

TEST(ServerInfoTest, CountsForTheServerInfo) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();

  const auto info = std::get<ServerInfo>(*world.Do(GetServerInfo{}));
  const auto workers = std::get<WorkersReply>(*world.Do(ListWorkers{}));

  EXPECT_EQ(info.submission_count, 1);
  EXPECT_EQ(info.worker_count, 1);
  EXPECT_EQ(info.last_seq, world.state().last_seq);
  ASSERT_EQ(workers.workers.size(), 1u);
  EXPECT_EQ(workers.workers[0].presence.last_seen_us, world.now_us());
}

}  // namespace
}  // namespace assay::core
