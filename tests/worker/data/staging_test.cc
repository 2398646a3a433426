#include "worker/data/staging.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::data {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::AllOf;
using ::testing::HasSubstr;

class StagingTest : public ::testing::Test {
 protected:
  StagingTest() {
    EXPECT_THAT(MakeDirectories(source_.Path("train")), IsOk());
    EXPECT_THAT(MakeDirectories(source_.Path("validation")), IsOk());
    for (int i = 0; i < 10; ++i) {
      job_.files.push_back(absl::StrCat(i < 8 ? "train/" : "validation/", i, ".tfrecord"));
      WriteFile(source_.Path(job_.files.back()), Content(i));
    }
  }

  // Sample 3 is empty, 7 is larger than a copy buffer.
  static std::string Content(int i) {
    const size_t size = i == 3 ? 0 : i == 7 ? size_t{9} << 20 : static_cast<size_t>(1000 * i + 1);
    return std::string(size, static_cast<char>('a' + i));
  }

  const TempDir source_;
  const TempDir target_;
  StagingJob job_ = {.source_dir = source_.path(), .target_dir = target_.path(), .threads = 3};
};

TEST_F(StagingTest, CopiesEveryByte) {
  dataset::Progress last;

  const absl::StatusOr<dataset::Progress> staged =
      StageFiles(job_, [&](const dataset::Progress& progress) { last = progress; });

  ASSERT_THAT(staged, IsOk());
  int64_t bytes = 0;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(
        ReadFile(target_.Path(job_.files[static_cast<size_t>(i)]), int64_t{1} << 24).value() ==
        Content(i));
    bytes += static_cast<int64_t>(Content(i).size());
  }
  EXPECT_EQ(staged->files, 10);
  EXPECT_EQ(staged->bytes, bytes);
  EXPECT_EQ(last.bytes, bytes);
  EXPECT_EQ(last.files_total, 10);
}

// How many pages of a file of ours are in memory.
size_t ResidentPages(const std::string& path) {
  const UniqueFd file = std::move(OpenRegularFile(path)).value();
  const size_t bytes = static_cast<size_t>(FileSize(path).value());
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  void* const map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  EXPECT_EQ(mincore(map, bytes, pages.data()), 0) << path;
  munmap(map, bytes);
  return static_cast<size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char flags) { return flags & 1; }));
}

// HPC rules v3.0, "Timing": what is staged before the clock starts is on durable storage, memory
// excluded.
TEST_F(StagingTest, ColdCopiesAreTheSameAndNotInMemory) {
  const std::string large = target_.Path(job_.files[7]);
  ASSERT_THAT(StageFiles(job_), IsOk());
  EXPECT_GT(ResidentPages(large), 0U) << "cannot be told here";
  job_.is_cold = true;

  ASSERT_THAT(StageFiles(job_), IsOk());

  for (const std::string& file : job_.files) {
    if (FileSize(target_.Path(file)).value() == 0) continue;
    EXPECT_EQ(ResidentPages(target_.Path(file)), 0U) << file;
  }
  EXPECT_THAT(ReadFile(target_.Path(job_.files[4])), IsOkAndHolds(Content(4)));
}

TEST_F(StagingTest, ReplacesStaleCopies) {
  ASSERT_THAT(MakeDirectories(target_.Path("train")), IsOk());
  WriteFile(target_.Path(job_.files[2]), std::string(2001, 'Z'));

  ASSERT_THAT(StageFiles(job_), IsOk());
  EXPECT_THAT(ReadFile(target_.Path(job_.files[2])), IsOkAndHolds(Content(2)));
}

TEST_F(StagingTest, NamesAMissingSourceAndLeavesNoHalfCopy) {
  ASSERT_THAT(RemoveTree(source_.Path(job_.files[5])), IsOk());

  EXPECT_THAT(StageFiles(job_),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(source_.Path(job_.files[5])), HasSubstr("of 10 files"))));
  EXPECT_FALSE(FileExists(target_.Path(job_.files[5])));
}

TEST_F(StagingTest, RefusesAFolderInPlaceOfASample) {
  ASSERT_THAT(RemoveTree(source_.Path(job_.files[5])), IsOk());
  ASSERT_THAT(MakeDirectories(source_.Path(job_.files[5])), IsOk());

  EXPECT_THAT(StageFiles(job_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  EXPECT_FALSE(FileExists(target_.Path(job_.files[5] + ".staging")));
}

TEST_F(StagingTest, StagesNothingWhenThereIsNothing) {
  job_.files.clear();

  EXPECT_THAT(StageFiles(job_), IsOk());
}

}  // namespace
}  // namespace assay::data
