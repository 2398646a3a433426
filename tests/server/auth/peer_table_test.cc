#include "server/auth/peer_table.h"

#include <fcntl.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::auth {
namespace {

using assay::testing::StatusIs;

constexpr PeerTable::Range kRange = {.first = 700, .count = 4, .count_per_user = 3};

UniqueFd AnyFd() {
  return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

std::string PeerName(const UniqueFd& fd) {
  return absl::StrCat("fd:", fd.get());
}

TEST(PeerTableTest, KnowsTheUserBehindANumber) {
  PeerTable table(kRange);
  const auto connection = table.Bind(AnyFd(), 1000);
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ(table.UserOf(PeerName(*connection)), 1000u);
}

TEST(PeerTableTest, ANumberOnceOfOneUserNeverBecomesAnothers) {
  PeerTable table(kRange);
  std::string mallory;
  {
    const auto connection = table.Bind(AnyFd(), 666);
    mallory = PeerName(*connection);
  }  // closed: the number is free again
  const auto root = table.Bind(AnyFd(), 0);

  EXPECT_NE(PeerName(*root), mallory);
  EXPECT_EQ(table.UserOf(mallory), 666u);
  EXPECT_EQ(table.UserOf(PeerName(*root)), 0u);
}

TEST(PeerTableTest, AUsersOwnNumbersAreUsedAgain) {
  PeerTable table(kRange);
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(table.Bind(AnyFd(), 1000).ok());
  EXPECT_TRUE(table.Bind(AnyFd(), 1001).ok());
}

TEST(PeerTableTest, OneUserCannotTakeAllConnections) {
  PeerTable table(kRange);
  std::vector<UniqueFd> open;
  for (int i = 0; i < kRange.count_per_user; ++i)
    open.push_back(*table.Bind(AnyFd(), 666));
  EXPECT_THAT(table.Bind(AnyFd(), 666), StatusIs(absl::StatusCode::kResourceExhausted));

  const auto root = table.Bind(AnyFd(), 0);
  EXPECT_TRUE(root.ok());
  EXPECT_THAT(table.Bind(AnyFd(), 1), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(PeerTableTest, KnowsNoOtherPeers) {
  PeerTable table(kRange);
  for (const char* peer : {"", "fd:", "fd:5", "fd:699", "fd:700", "fd:704", "fd:x", "fd:-1",
                           "ipv4:127.0.0.1:700", "unix:", "700"})
    EXPECT_EQ(table.UserOf(peer), std::nullopt) << peer;
}

TEST(PeerTableTest, TheDefaultRangeFitsTheLimitOfTheProcess) {
  const PeerTable::Range range = PeerTable::DefaultRange();
  EXPECT_GE(range.count, 64);
  PeerTable table(range);
  EXPECT_TRUE(table.Bind(AnyFd(), 1000).ok());
}

}  // namespace
}  // namespace assay::auth
