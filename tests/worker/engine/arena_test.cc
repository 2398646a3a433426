#include "worker/engine/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/status_matchers.h"
#include "worker/engine/backends/reference/reference_backend.h"

namespace assay {
namespace {

using ::testing::Each;
using testing::IsOk;
using testing::StatusIs;

TEST(ArenaTest, PacksTensorsWithoutGapsIntoOneFlatVector) {
  ReferenceBackend<float> backend;
  Arena arena(&backend, sizeof(float));
  Tensor first, second;
  arena.Reserve({3}, DType::kFloat32, &first);
  arena.Reserve({2, 2}, DType::kFloat32, &second);

  ASSERT_THAT(arena.Commit(), IsOk());

  const Tensor flat = arena.Flat(DType::kFloat32);
  EXPECT_EQ(flat.elements(), 7);
  EXPECT_EQ(first.As<float>(), flat.As<float>());
  EXPECT_EQ(second.As<float>(), flat.As<float>() + 3);
  EXPECT_THAT(flat.Span<float>(), Each(0.0F));
}

TEST(ArenaTest, AlignsTensors) {
  ReferenceBackend<float> backend;
  Arena arena(&backend, 64);
  Tensor first, second;
  arena.Reserve({3}, DType::kUint8, &first);
  arena.Reserve({5}, DType::kFloat32, &second);

  ASSERT_THAT(arena.Commit(), IsOk());

  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 64, 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second.data) % 64, 0);
}

TEST(ArenaTest, ReportsThatMemoryIsShort) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator ends the process instead";
#endif
  ReferenceBackend<float> backend;
  Arena arena(&backend, 64);
  Tensor huge;
  arena.Reserve({int64_t{1} << 50}, DType::kFloat32, &huge);

  EXPECT_THAT(arena.Commit(), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace assay
