// A worker that has enrolled and then turned against the coordinator: what it sends is refused, is
// not kept, and costs the others nothing.

#include <grpcpp/support/client_callback.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/log.h"
#include "common/mutex.h"
#include "tests/attack/witness.h"
#include "tests/integration/fake_worker.h"
#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using ::testing::AnyOf;

auto IsRefused() {
  return AnyOf(StatusIs(absl::StatusCode::kInvalidArgument),
               StatusIs(absl::StatusCode::kResourceExhausted),
               StatusIs(absl::StatusCode::kPermissionDenied), StatusIs(absl::StatusCode::kNotFound),
               StatusIs(absl::StatusCode::kAborted));
}

v1::SynchronizeRequest Report() {
  v1::SynchronizeRequest request;
  request.set_worker("workers/enemy");
  request.set_incarnation("one");
  request.mutable_status()->set_phase(v1::WorkerStatus::IDLE);
  return request;
}

// Calls of Synchronize that never stop: as soon as one is over, the next begins.
class Flood {
 public:
  Flood(Client* client, int count) : client_(*client), calls_(static_cast<size_t>(count)) {
    MutexLock lock(&mutex_);
    for (Call& call : calls_)
      Begin(&call);
  }

  // Ends the calls under way; how many there were in all.
  int Stop() {
    MutexLock lock(&mutex_);
    is_over_ = true;
    for (const Call& call : calls_)
      call.context->TryCancel();
    while (open_count_ > 0)
      CHECK(changed_.WaitFor(&mutex_, std::chrono::minutes(2))) << open_count_ << " calls hang";
    return call_count_;
  }

 private:
  struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    v1::SynchronizeRequest request;
    v1::SynchronizeResponse response;
  };

  void Begin(Call* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++call_count_;
    ++open_count_;
    call->context = std::make_unique<grpc::ClientContext>();
    PrepareCall(client_.endpoint(), absl::Seconds(60), call->context.get());
    call->request = Report();
    call->request.set_version(std::string(200, static_cast<char>('a' + call_count_ % 26)));
    client_.worker().async()->Synchronize(call->context.get(), &call->request, &call->response,
                                          [this, call](const grpc::Status&) { OnDone(call); });
  }

  void OnDone(Call* call) {
    MutexLock lock(&mutex_);
    --open_count_;
    if (!is_over_) return Begin(call);
    changed_.NotifyAll();
  }

  Client& client_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
  int call_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int open_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
};

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

// Each call says something new of the worker, so each is a commit.
TEST_F(HostileWorkerTest, DelaysNobodyBeyondMeasureByAFloodOfCalls) {
  constexpr int kAtATime = 200;
  Bell bell;  // never rung: it only lets time pass
  Flood flood(&*enemy_, kAtATime);

  bell.Wait(AttackDuration());

  sent_count_ = flood.Stop();
  EXPECT_GT(sent_count_, kAtATime);
}

}  // namespace
}  // namespace assay::testing
