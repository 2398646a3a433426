#include "worker/engine/backends/cuda/device/launch.h"

#include <gtest/gtest.h>

#include <memory>

#include "worker/engine/backends/cuda/device/cuda_device.h"

namespace assay::cuda {
namespace {

bool HasGpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

TEST(CudaDeviceTest, WithoutAGpuOpeningSaysWhatIsMissing) {
  if (HasGpu()) GTEST_SKIP() << "there is a GPU";
  std::unique_ptr<CudaDevice> device;

  const Fault fault = CudaDevice::Open(0, &device);

  EXPECT_EQ(fault.kind, FaultKind::kAbsent);
  EXPECT_NE(fault.text.find("driver"), std::string::npos) << fault.text;
  EXPECT_EQ(device, nullptr);
}

TEST(CudaDeviceTest, AnIndexBeyondTheGpusIsRefused) {
  if (!HasGpu()) GTEST_SKIP() << "there is no GPU";
  std::unique_ptr<CudaDevice> device;

  EXPECT_EQ(CudaDevice::Open(1000, &device).kind, FaultKind::kAbsent);
}

TEST(LaunchTest, WithoutAGpuAKernelReportsAnError) {
  if (HasGpu()) GTEST_SKIP() << "there is a GPU";
  float x = 1;

  EXPECT_NE(LaunchKernel(Multiply{.factor = &x, .x = &x, .count = 1}, 1, nullptr), cudaSuccess);
}

}  // namespace
}  // namespace assay::cuda
