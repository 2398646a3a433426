#include "worker/agent/cache_reset.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;

TEST(CacheResetTest, AsksTheKernelToDropEverythingWhereItMay) {
  const TempDir dir;
  ASSERT_THAT(WriteFileAtomic(dir.Path("drop_caches"), ""), IsOk());

  const absl::StatusOr<CacheReset> reset = ResetCaches(dir.path(), dir.Path("drop_caches"));

  ASSERT_THAT(reset, IsOk());
  EXPECT_EQ(reset->method, "drop_caches");
  EXPECT_THAT(ReadFile(dir.Path("drop_caches")), IsOkAndHolds("3"));
}

TEST(CacheResetTest, GivesUpTheDatasetsFilesWhereItMayNot) {
  const TempDir dir;
  ASSERT_THAT(MakeDirectories(dir.Path("train/deep")), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir.Path("train/a"), "data"), IsOk());
  ASSERT_THAT(WriteFileAtomic(dir.Path("train/deep/b"), "data"), IsOk());

  const absl::StatusOr<CacheReset> reset = ResetCaches(dir.path(), dir.Path("absent"));

  ASSERT_THAT(reset, IsOk());
  EXPECT_EQ(reset->method, "fadvise");
  EXPECT_EQ(reset->file_count, 2);
}

TEST(CacheResetTest, AMissingDatasetIsNamed) {
  EXPECT_THAT(ResetCaches("/no/such/dataset", "/no/such/file"),
              StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("/no/such/dataset")));
}

}  // namespace
}  // namespace assay::agent
