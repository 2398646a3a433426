#include "worker/engine/backends/cuda/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "worker/engine/backends/registry.h"

namespace assay::cuda {
namespace {

using assay::testing::StatusIs;
using assay::testing::TempDir;
using assay::testing::WriteFile;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

TEST(PluginTest, WithoutAPluginTheMessageNamesTheFilesAndTheRemedy) {
  EXPECT_THAT(OpenDevice(0, {"/nowhere/libassay_cuda.so"}).status(),
              StatusIs(kUnavailable, AllOf(HasSubstr("/nowhere/libassay_cuda.so"),
                                           HasSubstr("nvcc"), HasSubstr("\"onednn\""))));
}

// Where `cmake --install` puts it, seen from the folder of the programs.
TEST(PluginTest, ItIsLookedForWhereItIsInstalled) {
  EXPECT_THAT(PluginPaths(), Contains(HasSubstr("/../lib/assay/libassay_cuda.so")));
}

TEST(PluginTest, AFileThatIsNoLibrarySaysSo) {
  const TempDir dir;
  const std::string path = JoinPath(dir.path(), "libassay_cuda.so");
  WriteFile(path, "not a library");

  EXPECT_THAT(OpenDevice(0, {path}).status(),
              StatusIs(kUnavailable, AllOf(HasSubstr(path), HasSubstr("LD_LIBRARY_PATH"))));
}

TEST(PluginTest, ALibraryOfAnotherBuildIsRefused) {
  EXPECT_THAT(OpenDevice(0, {"/lib/x86_64-linux-gnu/libm.so.6"}).status(),
              StatusIs(kUnavailable, HasSubstr("another build")));
}

TEST(PluginTest, GpusAreCountedOrTheSameIsSaid) {
  EXPECT_THAT(
      CountDevices({"/nowhere/libassay_cuda.so"}).status(),
      StatusIs(kUnavailable, AllOf(HasSubstr("/nowhere/libassay_cuda.so"), HasSubstr("nvcc"))));
  EXPECT_THAT(CountDevices({"/lib/x86_64-linux-gnu/libm.so.6"}).status(),
              StatusIs(kUnavailable, HasSubstr("another build")));
}

// Where the plug-in was built: it loads, and either finds a GPU or says what is missing.
TEST(PluginTest, ThePluginOfThisBuildOpensAGpuOrNamesTheRemedy) {
  const char* const folder = std::getenv("ASSAY_BIN_DIR");
  const std::string path = JoinPath(folder == nullptr ? "." : folder, "libassay_cuda.so");
  if (!FileExists(path)) GTEST_SKIP() << "this build has no CUDA plug-in: " << path;

  const absl::StatusOr<int> count = CountDevices({path});
  const absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(0, {path});

  if (!device.ok()) {
    EXPECT_THAT(device.status(),
                StatusIs(kUnavailable, AllOf(HasSubstr("driver"), HasSubstr("onednn"))));
  }
  if (count.ok()) {
    EXPECT_GE(*count, 1);
  } else {
    EXPECT_THAT(count.status(), StatusIs(kUnavailable, HasSubstr("driver")));
  }
}

TEST(UsableBackendsTest, WhatNeedsNoDeviceIsAlwaysThere) {
  EXPECT_THAT(UsableBackendNames(), AllOf(Contains("onednn"), Contains("reference")));
}

}  // namespace
}  // namespace assay::cuda
