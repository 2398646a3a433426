#include "common/dataset/parallel.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::dataset {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;

TEST(ParallelTest, VisitsEveryIndexOnce) {
  for (const int threads : {0, 1, 4, 50}) {
    std::vector<std::atomic<int>> visits(20);

    EXPECT_THAT(ForEachIndex(20, threads,
                             [&](int thread, int64_t i) {
                               EXPECT_LT(thread, std::max(threads, 1));
                               ++visits[static_cast<size_t>(i)];
                               return absl::OkStatus();
                             }),
                IsOk());
    for (const std::atomic<int>& count : visits)
      EXPECT_EQ(count, 1);
  }
}

TEST(ParallelTest, ReturnsTheErrorOfTheLowestIndex) {
  for (const int threads : {1, 4}) {
    EXPECT_THAT(ForEachIndex(1000, threads,
                             [](int, int64_t i) {
                               return i < 10 ? absl::OkStatus()
                                             : absl::DataLossError(absl::StrCat(i));
                             }),
                StatusIs(absl::StatusCode::kDataLoss, "10"));
  }
}

TEST(ParallelTest, ProgressNeverFalls) {
  Progress last;
  ProgressMeter meter(100, [&](const Progress& progress) {
    EXPECT_EQ(progress.files, last.files + 1);
    EXPECT_EQ(progress.bytes, last.bytes + 5);
    EXPECT_EQ(progress.files_total, 100);
    last = progress;
  });

  EXPECT_THAT(ForEachIndex(100, 4,
                           [&](int, int64_t) {
                             meter.AddFile(5);
                             return absl::OkStatus();
                           }),
              IsOk());
  EXPECT_EQ(meter.total().bytes, 500);
}

}  // namespace
}  // namespace assay::dataset
