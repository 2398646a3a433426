// A worker that has enrolled and then turned against the coordinator: what it sends is refused, is
// not kept, and costs the others nothing.

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "tests/attack/witness.h"
#include "tests/integration/fake_worker.h"
#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using ::testing::AnyOf;

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kGrowthMax = 200 * kMebibyte;

auto IsRefused() {
  return AnyOf(StatusIs(absl::StatusCode::kInvalidArgument),
               StatusIs(absl::StatusCode::kResourceExhausted),
               StatusIs(absl::StatusCode::kPermissionDenied), StatusIs(absl::StatusCode::kNotFound),
               StatusIs(absl::StatusCode::kAborted));
}

class HostileWorkerTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    enemy_.emplace(deployment_.Worker("enemy"));
    witness_.emplace(deployment_.Unix());
    before_ = MemoryOf(deployment_.pid());
  }
  void TearDown() override {
    const Account account = witness_->Stop();
    EXPECT_TRUE(account.losses.empty()) << account.losses.front();
    const int64_t growth = MemoryOf(deployment_.pid()).peak - before_.resident;
    EXPECT_LT(growth, kGrowthMax);
    std::cout << "attack: " << sent_count_ << " hostile messages of a worker, "
              << account.latencies.size() << " calls of others, " << account.losses.size()
              << " lost, p99 " << account.Quantile(0.99) << ", RSS +" << growth / kMebibyte
              << " MB, load average " << LoadAverage() << "\n";
  }

  std::optional<Client> enemy_;
  std::optional<Witness> witness_;
  Memory before_;
  int sent_count_ = 0;
};

TEST_F(HostileWorkerTest, AddsNoEventsToRunsThatAreNotItsOwn) {
  ASSERT_THAT(Create(&*root_, TinySpec("Org", 1)), IsOk());
  FakeWorker honest(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(honest.AwaitRun(), IsOk());
  ASSERT_THAT(honest.SendLines({"true"}, 1), IsOk());

  for (int i = 0; i < 200; ++i) {
    ++sent_count_;
    grpc::ClientContext context;
    PrepareCall(enemy_->endpoint(), absl::Seconds(60), &context);
    const auto stream = enemy_->worker().StreamEvents(&context);
    v1::EventBatch batch;
    batch.set_run(honest.desired().run());
    batch.set_generation(honest.desired().generation());
    for (int64_t seq = 2; seq < 500; ++seq) {
      v1::RunEvent* const event = batch.add_events();
      event->set_seq(seq);
      event->set_kind(v1::RunEvent::LOG_LINE);
      event->set_text("false");
    }
    stream->Write(batch);
    stream->WritesDone();
    v1::EventAck ack;
    EXPECT_FALSE(stream->Read(&ack));
    EXPECT_THAT(FromGrpc(stream->Finish()), IsRefused());
  }

  EXPECT_EQ(WatchRunLines(&*root_, honest.desired().run()), std::vector<std::string>{"true"});
}

}  // namespace
}  // namespace assay::testing
