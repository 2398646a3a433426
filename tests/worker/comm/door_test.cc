#include "worker/comm/door.h"

#include <poll.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "worker/comm/socket.h"

namespace assay::comm {
namespace {

using assay::testing::IsOk;

// A connection that is let in is there at once; one that is not would be asked for again after a
// second.
constexpr absl::Duration kAnswer = absl::Milliseconds(300);

constexpr int kPatienceMs = 60'000;  // only a hang gets there

class DoorTest : public ::testing::Test {
 protected:
  DoorTest() {
    door_.Watch([this] {
      absl::StatusOr<UniqueFd> fd = ListenOn("127.0.0.1:0");
      EXPECT_THAT(fd, IsOk());
      listener_ = *std::move(fd);
    });
    address_ = LocalAddress(listener_.get());
  }

  absl::StatusOr<UniqueFd> Knock() { return ConnectTo(address_, clock_, clock_.Mono() + kAnswer); }
  bool IsLetIn() { return Knock().ok(); }

  const RealClock clock_;
  Door door_;
  UniqueFd listener_;
  std::string address_;
};

TEST_F(DoorTest, IsShutUntilItIsOpened) {
  EXPECT_FALSE(IsLetIn());
  door_.AdmitAll();
  EXPECT_TRUE(IsLetIn());
}

TEST_F(DoorTest, AdmitsTheHostsThatAreNamed) {
  door_.AdmitOnly({"10.1.2.3", "10.1.2.4"});
  EXPECT_FALSE(IsLetIn());
  door_.AdmitOnly({"10.1.2.3", "127.0.0.1", "127.0.0.1"});
  EXPECT_TRUE(IsLetIn());
}

TEST_F(DoorTest, AHostThatCannotBeToldByItsAddressOpensItForAll) {
  door_.AdmitOnly({"::1"});
  EXPECT_TRUE(IsLetIn());
}

TEST_F(DoorTest, AdmitsAsManyHostsAsAWorldMayHave) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 1023; ++i)
    hosts.push_back("10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256));
  hosts.push_back("127.0.0.1");
  door_.AdmitOnly(hosts);
  EXPECT_TRUE(IsLetIn());
}

TEST_F(DoorTest, WhoIsInsideStaysWhenItIsShut) {
  door_.AdmitAll();
  const absl::StatusOr<UniqueFd> inside = Knock();
  ASSERT_THAT(inside, IsOk());
  const UniqueFd other_end = AcceptFrom(listener_.get());

  door_.Shut();

  EXPECT_FALSE(IsLetIn());
  EXPECT_THAT(WriteAll(inside->get(), "x"), IsOk());
  pollfd waiting{.fd = other_end.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&waiting, 1, kPatienceMs), 1);
}

TEST(InterfaceOfTest, IsFoundByAddress) {
  EXPECT_EQ(InterfaceOf("127.0.0.1"), "lo");
  EXPECT_EQ(InterfaceOf("192.0.2.1"), "");
  EXPECT_EQ(InterfaceOf("::1"), "");
}

}  // namespace
}  // namespace assay::comm
