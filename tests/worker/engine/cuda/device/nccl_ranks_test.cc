#include "worker/engine/backends/cuda/device/nccl_ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace assay::cuda {
namespace {

TEST(NcclRanksTest, IdsDifferOrTheMissingLibraryIsNamed) {
  std::string first, second;

  const Fault fault = NcclRanks::MakeId(&first);

  if (!fault.ok()) {
    EXPECT_EQ(fault.kind, FaultKind::kAbsent);
    EXPECT_NE(fault.text.find("NCCL"), std::string::npos) << fault.text;
    GTEST_SKIP() << fault.text;
  }
  ASSERT_TRUE(NcclRanks::MakeId(&second).ok());
  EXPECT_EQ(first.size(), 128U);
  EXPECT_NE(first, second);
}

TEST(NcclRanksTest, AnIdOfAnotherSizeIsRefused) {
  std::unique_ptr<NcclRanks> ranks;

  EXPECT_FALSE(NcclRanks::Join({.id = "short", .size = 2}, &ranks).ok());
  EXPECT_EQ(ranks, nullptr);
}

TEST(NcclRanksTest, JoiningWithoutAGpuFailsAndDoesNotCrash) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) GTEST_SKIP() << "there is a GPU";
  std::string id;
  if (!NcclRanks::MakeId(&id).ok()) GTEST_SKIP() << "NCCL is not installed";
  std::unique_ptr<NcclRanks> ranks;

  EXPECT_FALSE(NcclRanks::Join({.id = id, .timeout = std::chrono::seconds(10)}, &ranks).ok());
}

}  // namespace
}  // namespace assay::cuda
