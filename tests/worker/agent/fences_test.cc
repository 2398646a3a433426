#include "worker/agent/fences.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using ::testing::IsEmpty;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;
using testing::TempDir;

TEST(FencesTest, OutliveTheProcess) {
  const TempDir dir;
  const std::map<std::string, int64_t> fences = {{"runs/a", 1}, {"runs/b", 77}};
  EXPECT_THAT(LoadFences(dir.Path("fences")), IsOkAndHolds(IsEmpty()));
  ASSERT_THAT(StoreFences(dir.Path("fences"), fences), IsOk());
  EXPECT_THAT(LoadFences(dir.Path("fences")), IsOkAndHolds(fences));
}

TEST(FencesTest, ADamagedFileIsNotTakenForAnEmptyOne) {
  const TempDir dir;
  ASSERT_THAT(WriteFileAtomic(dir.Path("fences"), "runs/a one\n"), IsOk());
  EXPECT_THAT(LoadFences(dir.Path("fences")),
              StatusIs(absl::StatusCode::kDataLoss, ::testing::HasSubstr("runs/a one")));
}

}  // namespace
}  // namespace assay::agent
