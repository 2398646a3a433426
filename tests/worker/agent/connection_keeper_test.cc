#include "worker/agent/connection_keeper.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/rpc/channel.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

// Before gRPC starts: nothing but the keeper moves this program's connections on.
const int kNoBackupPolls = setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "0", 1);

// Looks without waiting on the channel, which would itself move the connection on.
bool Reaches(grpc::Channel* channel, grpc_connectivity_state wanted) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (channel->GetState(/*try_to_connect=*/false) != wanted) {
    if (absl::Now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(ConnectionKeeperTest, ConnectsAgainThoughNoCallIsUnderWay) {
  ASSERT_EQ(kNoBackupPolls, 0);
  const testing::TempDir dir;
  const std::string target = absl::StrCat("unix:", dir.Path("socket"));
  const std::shared_ptr<grpc::Channel> channel = *MakeChannel({.target = target});
  const ConnectionKeeper keeper(channel);
  ASSERT_TRUE(Reaches(channel.get(), GRPC_CHANNEL_TRANSIENT_FAILURE));

  for (int restart = 0; restart < 2; ++restart) {
    v1::WorkerService::Service nothing;
    grpc::ServerBuilder builder;
    builder.RegisterService(&nothing);
    builder.AddListeningPort(target, grpc::InsecureServerCredentials());
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
    EXPECT_TRUE(Reaches(channel.get(), GRPC_CHANNEL_READY)) << "restart " << restart;
    server->Shutdown();
  }
}

}  // namespace
}  // namespace assay::agent
