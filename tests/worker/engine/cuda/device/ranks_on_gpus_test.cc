// Ranks that speak to each other by NCCL, each on a GPU of its own: as many as there are here. With
// one GPU the rank is alone, which still shows that NCCL's work can be recorded.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/worker/engine/cuda/device_ranks_conformance.h"
#include "worker/engine/backends/cuda/device/cuda_device.h"

namespace assay::cuda {
namespace {

int GpuCount() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

class RanksOnGpusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string id;
    const Fault fault = NcclRanks::MakeId(&id);
    if (fault.kind == FaultKind::kAbsent) GTEST_SKIP() << fault.text;
    ASSERT_TRUE(fault.ok()) << fault.text;
  }

  static std::unique_ptr<Device> Open(int rank) {
    std::unique_ptr<CudaDevice> device;
    const Fault fault = CudaDevice::Open(rank, &device);
    EXPECT_TRUE(fault.ok()) << fault.text;
    return device;
  }
};

TEST_F(RanksOnGpusTest, ARankAloneAveragesAndIsRecorded) {
  if (GpuCount() < 1) GTEST_SKIP() << "there is no GPU";
  CheckRanksOnDevices(1, Open);
}

TEST_F(RanksOnGpusTest, TwoRanksAverageAndExchange) {
  if (GpuCount() < 2) GTEST_SKIP() << "there are no two GPUs";
  CheckRanksOnDevices(2, Open);
}

TEST_F(RanksOnGpusTest, FourRanksAverageAndExchange) {
  if (GpuCount() < 4) GTEST_SKIP() << "there are no four GPUs";
  CheckRanksOnDevices(4, Open);
}

TEST_F(RanksOnGpusTest, ARankThatWaitsInVainSaysSoInTime) {
  if (GpuCount() < 1) GTEST_SKIP() << "there is no GPU";
  CheckRankWaitsInVain(Open(0).get());
}

}  // namespace
}  // namespace assay::cuda
