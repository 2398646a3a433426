// A stranger that speaks UCX, knows the ranks' addresses and which messages they wait for, and has
// everything but their secret.

#include <ucp/api/ucp.h>

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/log.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/comm/world.h"
#include "worker/comm/message_seals.h"
#include "worker/comm/rendezvous_server.h"
#include "worker/comm/ring.h"
#include "worker/comm/tcp_rendezvous.h"
#include "worker/comm/ucx.h"
#include "worker/comm/ucx_setup.h"

namespace assay::comm {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using ::testing::HasSubstr;
using testing::OnEveryRank;
using testing::Soon;
using testing::World;

// The door (door.h) is for TCP: here the stranger reaches the ranks, as one does who was let in.
constexpr char kTransports[] = "posix,self";
constexpr size_t kCount = 1000;  // floats: one message to every peer

// Passes everything on and remembers this rank's address.
class Eavesdropper final : public Rendezvous {
 public:
  Eavesdropper(std::unique_ptr<Rendezvous> inner, std::string* address)
      : inner_(std::move(inner)), address_(address) {}
  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  std::string local_host() const override { return inner_->local_host(); }
  absl::Status Set(absl::string_view key, absl::string_view value, MonoTime deadline) override {
    if (key.substr(0, kTopic.size()) == kTopic) *address_ = std::string(value.substr(kWishBytes));
    return inner_->Set(key, value, deadline);
  }
  absl::StatusOr<std::string> Get(absl::string_view key, MonoTime deadline,
                                  absl::FunctionRef<void()> poll) override {
    return inner_->Get(key, deadline, poll);
  }
  absl::StatusOr<std::string> Get(absl::string_view key, MonoTime deadline) override {
    return inner_->Get(key, deadline);
  }
  absl::Status Health() const override { return inner_->Health(); }
  absl::Status Leave(MonoTime deadline) override { return inner_->Leave(deadline); }

 private:
  static constexpr absl::string_view kTopic = "ucx/address/";
  const std::unique_ptr<Rendezvous> inner_;
  std::string* const address_;
};

// A UCX worker of its own.
class Stranger {
 public:
  explicit Stranger(const std::string& address) {
    ucp_config_t* config = nullptr;
    CHECK(ucp_config_read(nullptr, nullptr, &config) == UCS_OK);
    CHECK(ucp_config_modify(config, "TLS", kTransports) == UCS_OK);
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucp_context_h context = nullptr;
    CHECK(ucp_init(&params, config, &context) == UCS_OK);
    ucp_config_release(config);
    context_.reset(context);
    const ucp_worker_params_t worker_params = {};
    ucp_worker_h worker = nullptr;
    CHECK(ucp_worker_create(context, &worker_params, &worker) == UCS_OK);
    worker_.reset(worker);
    ucp_ep_params_t ep_params = {};
    ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    ep_params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    CHECK(ucp_ep_create(worker, &ep_params, &endpoint_) == UCS_OK);
  }

  // As rank `source` would send it. UCX sends what it can.
  void Send(int source, Tag tag, size_t bytes) {
    sent_.emplace_back(bytes, 'x');
    const ucp_request_param_t param = {};
    const ucp_tag_t wire_tag = static_cast<ucp_tag_t>(source) << 32 | tag;
    ucp_tag_send_nbx(endpoint_, sent_.back().data(), bytes, wire_tag, &param);
    for (int i = 0; i < 10'000; ++i)
      ucp_worker_progress(worker_.get());
  }

 private:
  UcxContext context_;
  UcxWorker worker_;
  ucp_ep_h endpoint_ = nullptr;
  std::deque<std::string> sent_;
};

class IntruderTest : public ::testing::Test {
 protected:
  // Two ranks as threads; the address of rank 1 is known.
  void Open() {
    absl::StatusOr<std::unique_ptr<RendezvousServer>> server =
        RendezvousServer::Start({.world_size = 2, .token = "secret"}, &clock_);
    CHECK_OK(server.status());
    const std::string address = (*server)->address();
    world_.resize(2);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        absl::StatusOr<std::unique_ptr<Rendezvous>> joined =
            JoinRendezvous({.address = address, .rank = rank, .world_size = 2, .token = "secret"},
                           rank == 0 ? *std::move(server) : nullptr, &clock_, Soon());
        CHECK_OK(joined.status());
        absl::StatusOr<std::unique_ptr<Collective>> comm =
            OpenUcx(std::make_unique<Eavesdropper>(*std::move(joined), &addresses_[rank]),
                    {.transports = kTransports, .sealing = Sealing::kAlways, .secret = "secret"},
                    &clock_, Soon());
        CHECK_OK(comm.status());
        world_[static_cast<size_t>(rank)] = *std::move(comm);
      });
    }
    for (std::thread& thread : threads)
      thread.join();
  }

  // The tag of the ranks' next operation, found by using one up on both.
  Tag NextTag() {
    world_[0]->NextTag();
    return world_[1]->NextTag() + 1;
  }

  static absl::Status Reduce(Collective* comm) {
    std::vector<float> values(kCount, 1.0F);
    absl::Status status = AllReduceSum(comm, std::span<float>(values), Soon());
    if (status.ok()) {
      EXPECT_EQ(values, std::vector<float>(kCount, 2.0F));
    }
    return status;
  }

  const RealClock clock_;
  std::string addresses_[2];
  World world_;
};

TEST_F(IntruderTest, AMessageWithoutASealEndsTheRunWhateverItsLength) {
  for (const size_t bytes : {kCount * sizeof(float) + kSealBytes, size_t{5}, size_t{0},
                             kCount * sizeof(float), size_t{6000}}) {
    SCOPED_TRACE(bytes);
    Open();
    Stranger stranger(addresses_[1]);
    stranger.Send(/*source=*/0, NextTag(), bytes);

    absl::Status of_zero;
    absl::Status of_one;
    OnEveryRank(world_,
                [&](Collective* comm) { (comm->rank() == 0 ? of_zero : of_one) = Reduce(comm); });

    EXPECT_THAT(of_one, StatusIs(absl::StatusCode::kUnauthenticated,
                                 HasSubstr("somebody who is no rank sends messages")));
    world_.clear();
  }
}

TEST_F(IntruderTest, MessagesThatNobodyWaitsForDoNoHarm) {
  Open();
  Stranger stranger(addresses_[1]);
  for (const int source : {0, 1, 7, 1 << 20}) {
    for (const Tag tag : {Tag{0}, kFirstCollectiveTag, ~Tag{0}})
      stranger.Send(source, tag, 100);
  }

  OnEveryRank(world_, [&](Collective* comm) {
    EXPECT_THAT(Reduce(comm), IsOk());
    EXPECT_THAT(comm->Close(Soon()), IsOk());
  });
}

}  // namespace
}  // namespace assay::comm
