#include "worker/engine/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "common/random.h"
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

TEST(ArenaTest, TensorsOfDifferentTimesShareMemory) {
  ReferenceBackend<float> backend;
  Arena arena(&backend, 64);
  Tensor early, late, whole, large;
  arena.ReserveShared({16}, DType::kFloat32, {{0, 1}}, &early);
  arena.ReserveShared({16}, DType::kFloat32, {{2, 3}}, &late);
  arena.ReserveShared({16}, DType::kFloat32, {{0, 3}}, &whole);
  arena.ReserveShared({48}, DType::kFloat32, {{4, Lifetime::kForever}}, &large);

  ASSERT_THAT(arena.Commit(), IsOk());

  EXPECT_EQ(early.data, late.data);
  EXPECT_NE(early.data, whole.data);
  EXPECT_EQ(arena.shared_bytes(), 48 * sizeof(float));
  EXPECT_EQ(arena.bytes(), 48 * sizeof(float));
}

// Many lifetimes at random: two tensors that are needed at the same time step lie apart.
TEST(ArenaTest, TensorsOfOneTimeLieApart) {
  ReferenceBackend<float> backend;
  Arena arena(&backend, 64);
  const Stream stream(11, Purpose::kTest);
  constexpr size_t kTensors = 200;
  std::vector<Tensor> tensors(kTensors);
  std::vector<Lifetime> times;
  for (size_t i = 0; i < kTensors; ++i) {
    const int64_t first = stream.Below(3 * i, 100);
    times.push_back({first, first + stream.Below(3 * i + 1, 20)});
    arena.ReserveShared({1 + stream.Below(3 * i + 2, 1000)}, DType::kUint8, {times[i]},
                        &tensors[i]);
  }

  ASSERT_THAT(arena.Commit(), IsOk());

  size_t sum = 0;
  for (size_t i = 0; i < kTensors; ++i) {
    sum += tensors[i].bytes();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensors[i].data) % 64, 0);
    for (size_t j = 0; j < i; ++j) {
      if (!times[i].Overlaps(times[j])) continue;
      const auto *a = tensors[i].As<uint8_t>(), *b = tensors[j].As<uint8_t>();
      EXPECT_TRUE(a + tensors[i].bytes() <= b || b + tensors[j].bytes() <= a) << i << " " << j;
    }
  }
  EXPECT_LT(arena.shared_bytes(), sum / 3);
}

// A tensor that is written twice leaves its place to others in between, and to none in its times.
TEST(ArenaTest, ATensorOfSeveralTimesLendsItsPlaceBetweenThem) {
  ReferenceBackend<float> backend;
  Arena arena(&backend, 64);
  Tensor twice, between, at_both;
  arena.ReserveShared({16}, DType::kFloat32, {{0, 1}, {8, 9}}, &twice);
  arena.ReserveShared({16}, DType::kFloat32, {{3, 6}}, &between);
  arena.ReserveShared({16}, DType::kFloat32, {{4, 4}, {9, 12}}, &at_both);

  arena.Place();
  EXPECT_EQ(arena.bytes(), 32 * sizeof(float));
  ASSERT_THAT(arena.Commit(), IsOk());

  EXPECT_EQ(twice.data, between.data);
  EXPECT_NE(at_both.data, twice.data);
  EXPECT_EQ(arena.bytes(), 32 * sizeof(float));
}

TEST(ArenaTest, BorrowsWhereThereIsRoom) {
  ReferenceBackend<float> backend;
  Arena lender(&backend, 64), small(&backend, 64), large(&backend, 64);
  Tensor lent, borrowed, own, kept;
  lender.ReserveShared({100}, DType::kFloat32, {{}}, &lent);
  small.ReserveShared({50}, DType::kFloat32, {{}}, &borrowed);
  small.Reserve({4}, DType::kFloat32, &kept);
  large.ReserveShared({101}, DType::kFloat32, {{}}, &own);

  ASSERT_THAT(lender.Commit(), IsOk());
  ASSERT_THAT(small.Commit(&lender), IsOk());
  ASSERT_THAT(large.Commit(&lender), IsOk());

  EXPECT_EQ(borrowed.data, lent.data);
  EXPECT_EQ(small.bytes(), 4 * sizeof(float));
  EXPECT_NE(own.data, lent.data);
  EXPECT_EQ(large.bytes(), 101 * sizeof(float));
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
