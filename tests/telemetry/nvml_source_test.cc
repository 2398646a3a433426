// GPUs by the driver's library, of which the build makes a small one.

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

SourceOptions WithLibrary(const std::string& path) {
  SourceOptions options;
  options.nvml_library = path;
  return options;
}

std::map<std::string, int64_t> ReadNow(TelemetrySource* source) {
  std::vector<int64_t> values(source->columns().size(), telemetry::kMissing);
  source->Sample(values);
  std::map<std::string, int64_t> read;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != telemetry::kMissing) read[source->columns()[i].name] = values[i];
  return read;
}

TEST(NvmlSourceTest, SaysWhatTheDriverSaysOfEachGpu) {
  const std::unique_ptr<TelemetrySource> source = MakeNvmlSource(WithLibrary(FAKE_NVML));
  const std::map<std::string, int64_t> read = ReadNow(source.get());
  EXPECT_THAT(read, Contains(Pair("gpu.0.utilization", 91)));
  EXPECT_THAT(read, Contains(Pair("gpu.1.utilization", 92)));
  EXPECT_THAT(read, Contains(Pair("gpu.1.memory", 50'000)));
  EXPECT_THAT(read, Contains(Pair("power.gpu.1", 600'000)));
  EXPECT_THAT(read, Contains(Pair("energy.gpu.0", 7'000'000))) << "in uJ";
  EXPECT_THAT(read, Not(Contains(Key("energy.gpu.1")))) << "one of before Volta";
  EXPECT_THAT(read, Contains(Pair("gpu.0.clock", 1'980)));
  EXPECT_THAT(read, Contains(Pair("gpu.0.throttle_reasons", 4)));
  EXPECT_THAT(read, Contains(Pair("gpu.0.temperature", 55)));
}

TEST(NvmlSourceTest, ADriverThatHangsDelaysNoSample) {
  void* const library = dlopen(FAKE_NVML, RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto hang = reinterpret_cast<void (*)(int)>(dlsym(library, "FakeNvmlHang"));
  ASSERT_NE(hang, nullptr);
  std::unique_ptr<TelemetrySource> source = MakeNvmlSource(WithLibrary(FAKE_NVML));
  hang(1);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(ReadNow(source.get()), IsEmpty());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4))
      << "it is waited for once, not with each sample";
  source.reset();  // and nobody waits for it at the end
  hang(0);
}

TEST(NvmlSourceTest, ANodeWithoutTheLibraryHasNoGpus) {
  EXPECT_THAT(MakeNvmlSource(WithLibrary("/nowhere/libnvidia-ml.so.1"))->columns(), IsEmpty());
  EXPECT_THAT(MakeNvmlSource({})->columns(), IsEmpty());
}

}  // namespace
}  // namespace assay::agent
