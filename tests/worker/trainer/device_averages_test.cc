// Averages over ranks' devices are timed, each rank a thread with a device faked on the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/exit_code.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "worker/comm/rendezvous_server.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/trainer/all_reduce_times.h"
#include "worker/trainer/failure.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::StatusIs;

class DeviceAveragesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto server = comm::RendezvousServer::Start({.token = "x"}, &clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    spec_.set_name("bench");
    spec_.set_rendezvous_address((*server)->address());  // free again at once
    spec_.set_token("nobody else's");
    spec_.mutable_time_limit()->set_seconds(60);
  }

  const RealClock clock_{};
  v1::FabricSpec spec_;
};

TEST_F(DeviceAveragesTest, MeansOfEachSizeAreTimedOnTheDevice) {
  const std::vector<int64_t> sizes = {4, 1 << 20};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      v1::FabricSpec spec = spec_;
      spec.set_rank(rank);
      spec.set_node_count(2);
      auto device = std::make_unique<cuda::HostDevice>();
      const cuda::HostDevice* const watched = device.get();
      auto backend = cuda::CudaBackend::Make(std::move(device), {});
      ASSERT_TRUE(backend.ok()) << backend.status();
      const absl::StatusOr<std::vector<AllReduceTime>> times =
          MeasureDeviceAverages(spec, sizes, backend->get(), &clock_);
      ASSERT_TRUE(times.ok()) << times.status();
      ASSERT_THAT(*times, SizeIs(2));
      for (size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ((*times)[i].bytes, sizes[i]);
        EXPECT_GT((*times)[i].median_us, 0);
      }
      EXPECT_GE(watched->averages(), 2 * 7) << "seven times each at least";
    });
  for (std::thread& thread : threads)
    thread.join();
}

class DeviceWithoutNccl : public cuda::HostDevice {
 public:
  cuda::Fault MakeRanksId(std::string*) override {
    return {.kind = cuda::FaultKind::kAbsent, .text = "cannot load libnccl.so.2"};
  }
};

// Nobody else comes, and it does not wait for them.
TEST_F(DeviceAveragesTest, ARankWithoutTheLibrarySaysSoAtOnce) {
  spec_.set_rank(1);
  spec_.set_node_count(2);
  auto backend = cuda::CudaBackend::Make(std::make_unique<DeviceWithoutNccl>(), {});
  ASSERT_TRUE(backend.ok()) << backend.status();

  const absl::Status status =
      MeasureDeviceAverages(spec_, std::vector<int64_t>{4}, backend->get(), &clock_).status();

  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("libnccl.so.2")));
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kBackend);
}

}  // namespace
}  // namespace assay
