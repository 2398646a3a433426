#include "server/gate/connection_table.h"

#include <fcntl.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::gate {
namespace {

using assay::testing::StatusIs;

constexpr ConnectionTable::Range kRange = {
    .first = 700, .count = 6, .count_per_peer = 3, .reserved_count = 1};

UniqueFd AnyFd() {
  return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

std::string PeerName(const UniqueFd& fd) {
  return absl::StrCat("fd:", fd.get());
}

auth::Evidence User(uid_t uid) {
  return {.user = uid};
}

absl::StatusOr<UniqueFd> Bind(ConnectionTable* table, uid_t uid) {
  return table->Bind(AnyFd(), User(uid), /*is_operator=*/uid == 0);
}

TEST(ConnectionTableTest, KnowsWhoIsBehindANumber) {
  ConnectionTable table(kRange);
  const auto connection = Bind(&table, 1000);
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ(table.Find(PeerName(*connection))->user, 1000u);
}

TEST(ConnectionTableTest, ANumberThatGrpcHasOpenIsNotGivenAgain) {
  ConnectionTable table(kRange);
  std::vector<UniqueFd> open;
  open.push_back(*Bind(&table, 666));
  const std::string mallory = PeerName(open[0]);
  table.Release(open[0].get());  // the client is gone, a call of it is not

  for (int i = 0; i < 20; ++i) {
    const auto other = Bind(&table, 0);
    ASSERT_TRUE(other.ok());
    EXPECT_NE(PeerName(*other), mallory);
    table.Release(other->get());
  }
  EXPECT_EQ(table.Find(mallory)->user, 666u);
}

TEST(ConnectionTableTest, TheNumberThatLayIdleLongestComesFirst) {
  ConnectionTable table(kRange);
  const int first = Bind(&table, 1)->get();
  table.Release(first);
  for (int i = 1; i < kRange.count; ++i) {
    const int next = Bind(&table, 2)->get();
    EXPECT_NE(next, first);
    table.Release(next);
  }
  EXPECT_EQ(Bind(&table, 3)->get(), first);
}

TEST(ConnectionTableTest, OnePeerCannotTakeAllConnections) {
  ConnectionTable table(kRange);
  std::vector<UniqueFd> open;
  for (int i = 0; i < kRange.count_per_peer; ++i)
    open.push_back(*Bind(&table, 666));
  EXPECT_THAT(Bind(&table, 666), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(Bind(&table, 667).ok());

  table.Release(open.back().get());
  open.pop_back();
  EXPECT_TRUE(Bind(&table, 666).ok()) << "what has ended does not count";
}

TEST(ConnectionTableTest, TheLastConnectionsAreForOperators) {
  ConnectionTable table(kRange);
  std::vector<UniqueFd> open;
  for (int i = 0; i < kRange.count - kRange.reserved_count; ++i)
    open.push_back(*Bind(&table, static_cast<uid_t>(1000 + i)));
  EXPECT_THAT(Bind(&table, 999), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(Bind(&table, 0).ok());
}

TEST(ConnectionTableTest, WorkersAndBearersAreCountedByNameAndToken) {
  auth::Evidence worker;
  worker.certificate_common_name = "w0";
  auth::Evidence bearer = worker;
  bearer.certificate_token_sha256 = std::string(64, 'a');
  EXPECT_EQ(ConnectionTable::PeerOf(worker), "worker w0");
  EXPECT_EQ(ConnectionTable::PeerOf(bearer), "token aaaaaaaa of w0");
}

TEST(ConnectionTableTest, KnowsNoOtherPeers) {
  ConnectionTable table(kRange);
  for (const char* peer : {"", "fd:", "fd:5", "fd:699", "fd:700", "fd:706", "fd:x", "fd:-1",
                           "ipv4:127.0.0.1:700", "unix:", "700"})
    EXPECT_EQ(table.Find(peer), std::nullopt) << peer;
}

TEST(ConnectionTableTest, TheDefaultRangeFitsTheLimitOfTheProcess) {
  const ConnectionTable::Range range = ConnectionTable::DefaultRange();
  EXPECT_GE(range.count, 64);
  ConnectionTable table(range);
  EXPECT_TRUE(Bind(&table, 1000).ok());
}

}  // namespace
}  // namespace assay::gate
