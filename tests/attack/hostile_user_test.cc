// Users of the coordinator's host who are not listed, or are and hold all connections that they
// get: the operator always finds a way in through the Unix socket.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"

#include "common/log.h"
#include "tests/attack/hostile.h"
#include "tests/attack/witness.h"
#include "tests/integration/deployment.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

constexpr uid_t kListedUser = 61000;
constexpr uid_t kStrangers[] = {60001, 60002, 60003, 60004};
constexpr int kConnectionsPerUser = 1024;

// Does `action` on a thread that is `user` for the kernel; the rest of the process stays who it is.
template <typename Action>
void AsUser(uid_t user, Action action) {
  std::thread thread([&] {
    // Past the C library, which would change the user of all threads.
    CHECK(syscall(SYS_setresuid, user, user, user) == 0);
    action();
  });
  thread.join();
}

absl::Status Hello(const Endpoint& endpoint) {
  Client client(endpoint);
  return client
      .Call(client.admin(), &v1::AdminService::Stub::GetServerInfo, v1::GetServerInfoRequest())
      .status();
}

TEST(HostileUserTest, FillsNoTableThatTheOperatorNeeds) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act as other users";
  Deployment deployment;
  ASSERT_THAT(deployment.Start("local_users { uid: 61000 principal: \"dora\" role: \"reviewer\" }"),
              IsOk());
  // mkdtemp's directory is closed to others; the socket itself is not.
  ASSERT_EQ(chmod(deployment.dir().path().c_str(), 0755), 0);
  const std::string path(absl::StripPrefix(deployment.Unix().target, "unix:"));
  Witness root(deployment.Unix());
  EXPECT_THAT(Hello(deployment.Unix()), IsOk()) << "before";

  std::vector<UniqueFd> held;
  size_t held_count = 0;
  const auto hold = [&] {
    for (UniqueFd& fd : ConnectSilentlyUnix(path, kConnectionsPerUser))
      held.push_back(std::move(fd));
  };
  for (const uid_t stranger : kStrangers)
    AsUser(stranger, hold);
  EXPECT_THAT(Hello(deployment.Unix()), IsOk()) << "while strangers hold " << held.size();
  AsUser(kListedUser, hold);
  EXPECT_THAT(Hello(deployment.Unix()), IsOk()) << "while all hold " << held.size();
  held_count = held.size();
  held.clear();
  EXPECT_THAT(Hello(deployment.Unix()), IsOk()) << "afterwards";
  const Account account = root.Stop();

  std::cout << "attack: " << held_count << " connections of local users, "
            << account.latencies.size() << " calls of the operator, " << account.losses.size()
            << " lost, p99 " << account.Quantile(0.99) << ", load average " << LoadAverage()
            << "\n";
  EXPECT_GT(held_count, 0U);
  EXPECT_TRUE(account.losses.empty()) << account.losses.front();
}

}  // namespace
}  // namespace assay::testing
