#include "worker/agent/rendezvous_listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::agent {
namespace {

using testing::IsOk;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// A port that is bound but not listened on can be taken by whoever sets SO_REUSEADDR too.
TEST(RendezvousListenerTest, NobodyElseCanListenOnItsPort) {
  const absl::StatusOr<RendezvousListener> listener = RendezvousListener::Open("127.0.0.1");
  ASSERT_THAT(listener, IsOk());
  const UniqueFd squatter(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ASSERT_EQ(setsockopt(squatter.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);

  const sockaddr_in address = Loopback(listener->port());

  EXPECT_NE(bind(squatter.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(errno, EADDRINUSE);
}

TEST(RendezvousListenerTest, ConnectionsWaitForRankZero) {
  for (const char* host : {"127.0.0.1", "192.0.2.1"}) {
    const absl::StatusOr<RendezvousListener> listener = RendezvousListener::Open(host);
    ASSERT_THAT(listener, IsOk());
    const UniqueFd rank(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Loopback(listener->port());

    ASSERT_EQ(connect(rank.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);

    EXPECT_TRUE(UniqueFd(accept(listener->fd(), nullptr, nullptr)).is_open());
  }
}

}  // namespace
}  // namespace assay::agent
