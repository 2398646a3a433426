// Anonymous connections do to the coordinator's port what they can, while others work. However many
// there are, nobody else loses a call, and memory stays bounded.
//
// Short, unless ASSAY_ATTACK_SECONDS says how long each attack lasts: `tests/run.sh attack`.

#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "tests/attack/hostile.h"
#include "tests/attack/witness.h"
#include "tests/integration/deployment.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

// An operator on the host and two workers, one of whom was connected before.
class Public {
 public:
  explicit Public(const Deployment& deployment) {
    witnesses_.push_back(std::make_unique<Witness>(deployment.Unix()));
    for (const char* worker : {"w0", "w1"})
      witnesses_.push_back(std::make_unique<Witness>(deployment.Worker(worker)));
  }
  Account Stop() {
    Account account;
    for (const std::unique_ptr<Witness>& witness : witnesses_)
      account.Add(witness->Stop());
    return account;
  }

 private:
  std::vector<std::unique_ptr<Witness>> witnesses_;
};

absl::StatusOr<v1::ServerInfo> Greet(const Endpoint& endpoint) {
  Client client(endpoint);
  return client.Call(client.admin(), &v1::AdminService::Stub::GetServerInfo,
                     v1::GetServerInfoRequest());
}

std::string Text(const Account& account) {
  return absl::StrFormat("%d calls of others, %d lost, p50 %.1f ms, p99 %.1f ms, max %.1f ms",
                         account.latencies.size(), account.losses.size(),
                         absl::ToDoubleMilliseconds(account.Quantile(0.5)),
                         absl::ToDoubleMilliseconds(account.Quantile(0.99)),
                         absl::ToDoubleMilliseconds(account.Quantile(1)));
}

class StrangersTest : public ::testing::TestWithParam<int> {};

TEST_P(StrangersTest, CostOthersNoCallAndTheCoordinatorLittleMemory) {
  const int count = GetParam();
  Deployment deployment;
  ASSERT_THAT(deployment.Start(), IsOk());
  const std::string address = deployment.Tls().target;
  Public others(deployment);
  Bell bell;  // never rung: it only lets time pass
  bell.Wait(absl::Seconds(1));
  const Memory before = MemoryOf(deployment.pid());

  Crowd crowd(address, count);
  bell.Wait(AttackDuration());
  const std::string load = LoadAverage();
  const Crowd::Tally tally = crowd.Leave();
  const Account account = others.Stop();
  const int64_t growth = MemoryOf(deployment.pid()).peak - before.resident;

  std::cout << absl::StreamFormat(
      "attack: %d strangers, %d hostile connections (%d turned away, %.1f MB sent), %s, RSS +%d "
      "MB, load average %s\n",
      count, tally.connections, tally.turned_away, static_cast<double>(tally.sent_bytes) / 1e6,
      Text(account), growth / kMebibyte, load);
  EXPECT_GT(tally.connections, 0);
  EXPECT_GT(account.latencies.size(), 0U);
  EXPECT_TRUE(account.losses.empty()) << account.losses.front();
  EXPECT_LT(growth, kGrowthMax);
}

INSTANTIATE_TEST_SUITE_P(Counts, StrangersTest, ::testing::Values(2, 200));

TEST(DescriptorsTest, RunningOutOfThemDelaysNobodyAndLastsNoLongerThanTheAttack) {
  constexpr int kLimit = 1024;
  Deployment deployment;
  deployment.set_descriptor_limit(kLimit);
  ASSERT_THAT(deployment.Start(), IsOk());
  const std::string address = deployment.Tls().target;
  Public others(deployment);

  std::vector<UniqueFd> held = ConnectSilently(address, 2 * kLimit);
  const size_t held_count = held.size();
  EXPECT_THAT(Greet(deployment.Worker("w2")), IsOk()) << "while " << held_count << " are held";
  EXPECT_THAT(Greet(deployment.Unix()), IsOk()) << "while " << held_count << " are held";
  const int64_t descriptors = DescriptorsOf(deployment.pid());
  held.clear();
  EXPECT_THAT(Greet(deployment.Worker("w3")), IsOk()) << "afterwards";
  EXPECT_THAT(Greet(deployment.Unix()), IsOk()) << "afterwards";
  const Account account = others.Stop();

  std::cout << "attack: " << held_count << " silent connections, " << descriptors << " of "
            << kLimit << " descriptors in use, " << Text(account) << ", load average "
            << LoadAverage() << "\n";
  EXPECT_LT(descriptors, kLimit);
  EXPECT_TRUE(account.losses.empty()) << account.losses.front();
}

}  // namespace
}  // namespace assay::testing
