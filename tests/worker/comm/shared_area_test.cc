#include "worker/comm/shared_area.h"

#include <cstring>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"

namespace assay::comm {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;

TEST(SharedAreaTest, OneWritesWhatTheOtherReadsUntilItsNameIsGone) {
  const auto first = SharedArea::Create(3);
  ASSERT_THAT(first, IsOk());
  const auto second = SharedArea::Open((*first)->name(), 3);
  ASSERT_THAT(second, IsOk());
  std::memcpy((*first)->Slot(2, 7).data() + SharedArea::kSlotBytes - 5, "terms", 5);
  (*first)->line(2).entered.store(7);

  EXPECT_EQ((*second)->line(2).entered.load(), 7U);
  EXPECT_EQ(std::memcmp((*second)->Slot(2, 7).data() + SharedArea::kSlotBytes - 5, "terms", 5), 0);
  EXPECT_NE((*second)->Slot(2, 7).data(), (*second)->Slot(2, 8).data());
  EXPECT_EQ((*second)->Slot(2, 7).data(), (*second)->Slot(2, 9).data());
  const std::string path = "/dev/shm" + (*first)->name();
  EXPECT_TRUE(FileExists(path));

  (*first)->TakeNameAway();

  EXPECT_FALSE(FileExists(path));
  EXPECT_THAT(SharedArea::Open((*first)->name(), 3), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ((*second)->line(2).entered.load(), 7U) << "who has it keeps it";
}

TEST(SharedAreaTest, NothingStaysOfOneThatNobodyOpened) {
  std::string path;
  {
    const auto area = SharedArea::Create(2);
    ASSERT_THAT(area, IsOk());
    path = "/dev/shm" + (*area)->name();
    EXPECT_TRUE(FileExists(path));
  }
  EXPECT_FALSE(FileExists(path));
}

}  // namespace
}  // namespace assay::comm
