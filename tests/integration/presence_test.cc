// What the coordinator takes for a sign of life.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "tests/integration/deployment.h"
#include "tests/integration/service_fixture.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using ::testing::Not;

class PresenceTest : public ServiceTest {};

// Its call is held for 20 s; its connection ends long before.
TEST_F(PresenceTest, AWorkerIsThereWhileItsCallIsHeldAndNoLongerThanItsConnection) {
  ASSERT_THAT(deployment_.Terminate(), IsOkAndHolds(0));
  ASSERT_THAT(deployment_.Start("scheduler { suspect_after_ms: 1000 }"), IsOk());
  Client agent(deployment_.Worker("w0"));
  v1::SynchronizeRequest request;
  request.set_worker("workers/w0");
  request.set_incarnation("one");
  request.mutable_status()->set_phase(v1::WorkerStatus::IDLE);
  request.mutable_poll_timeout()->set_seconds(20);
  grpc::ClientContext context;
  PrepareCall(agent.endpoint(), absl::Minutes(1), &context);
  std::thread call([&] {
    v1::SynchronizeResponse response;
    EXPECT_THAT(FromGrpc(agent.worker().Synchronize(&context, request, &response)), Not(IsOk()));
  });
  // Asks until `is_it` of the worker; false once the call must have ended by itself.
  const absl::Time deadline = absl::Now() + absl::Seconds(15);
  const auto await = [&](auto is_it) {
    while (absl::Now() < deadline) {
      const auto listed = root_->Call(root_->admin(), &Admin::ListWorkers, {});
      if (listed.ok() && listed->workers_size() == 1 && is_it(listed->workers(0))) return true;
    }
    return false;
  };
  int64_t first_seen_s = 0;
  const bool is_trusted = await([&first_seen_s](const v1::Worker& worker) {
    if (first_seen_s == 0) first_seen_s = worker.last_seen_time().seconds();
    EXPECT_EQ(worker.state(), v1::Worker::ALIVE) << "its call is held";
    return worker.last_seen_time().seconds() >= first_seen_s + 2;
  });
  EXPECT_TRUE(is_trusted);

  context.TryCancel();
  call.join();
  EXPECT_TRUE(await([](const v1::Worker& worker) { return worker.state() == v1::Worker::SUSPECT; }))
      << "the end of its connection is not noticed";
}

}  // namespace
}  // namespace assay::testing
