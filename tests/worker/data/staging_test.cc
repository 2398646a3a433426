#include "worker/data/staging.h"

#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/sha256.h"
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
using ::testing::AnyOf;
using ::testing::HasSubstr;

class StagingTest : public ::testing::Test {
 protected:
  StagingTest() {
    EXPECT_THAT(MakeDirectories(source_.Path("train")), IsOk());
    EXPECT_THAT(MakeDirectories(source_.Path("validation")), IsOk());
    for (size_t i = 0; i < 10; ++i) {
      job_.files.push_back(
          {.name = absl::StrCat(i < 8 ? "train/" : "validation/", i, ".tfrecord")});
      WriteFile(SourceOf(i), Content(i));
    }
  }

  // Sample 3 is empty, 7 is larger than a copy buffer.
  static std::string Content(size_t i) {
    const size_t size = i == 3 ? 0 : i == 7 ? size_t{9} << 20 : 1000 * i + 1;
    return std::string(size, static_cast<char>('a' + static_cast<int>(i)));
  }

  std::string SourceOf(size_t i) const { return source_.Path(job_.files[i].name); }
  std::string CopyOf(size_t i) const { return target_.Path(job_.files[i].name); }

  absl::StatusOr<Staged> Stage() { return StageFiles(job_, &clock_); }

  const RealClock clock_;
  const TempDir source_;
  const TempDir target_;
  StagingJob job_ = {.source_dir = source_.path(), .target_dir = target_.path()};
};

TEST_F(StagingTest, CopiesEveryByte) {
  dataset::Progress last;

  const absl::StatusOr<Staged> staged =
      StageFiles(job_, &clock_, [&](const dataset::Progress& progress) { last = progress; });

  ASSERT_THAT(staged, IsOk());
  int64_t bytes = 0;
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(ReadFile(CopyOf(i), int64_t{1} << 24).value() == Content(i));
    bytes += static_cast<int64_t>(Content(i).size());
  }
  EXPECT_EQ(staged->files, 10);
  EXPECT_EQ(staged->bytes, bytes);
  EXPECT_EQ(last.bytes, bytes);
  EXPECT_EQ(last.files_total, 10);
  EXPECT_GT(staged->elapsed, absl::ZeroDuration());
  EXPECT_GE(staged->elapsed, staged->file_p99);
  EXPECT_EQ(staged->retries, 0);
}

// How many pages of a file of ours are in memory.
size_t ResidentPages(const std::string& path) {
  const UniqueFd file = std::move(OpenRegularFile(path)).value();
  const size_t bytes = static_cast<size_t>(FileSize(path).value());
  if (bytes == 0) return 0;
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
  ASSERT_THAT(MakeDirectories(target_.Path("train")), IsOk());
  WriteFile(CopyOf(7), Content(7));
  EXPECT_GT(ResidentPages(CopyOf(7)), 0U) << "cannot be told here";
  job_.is_cold = true;

  ASSERT_THAT(Stage(), IsOk());

  for (size_t i = 0; i < job_.files.size(); ++i)
    EXPECT_EQ(ResidentPages(CopyOf(i)), 0U) << i;
  EXPECT_THAT(ReadFile(CopyOf(4)), IsOkAndHolds(Content(4)));
}

TEST_F(StagingTest, ReplacesStaleCopies) {
  ASSERT_THAT(MakeDirectories(target_.Path("train")), IsOk());
  WriteFile(CopyOf(2), std::string(2001, 'Z'));

  ASSERT_THAT(Stage(), IsOk());
  EXPECT_THAT(ReadFile(CopyOf(2)), IsOkAndHolds(Content(2)));
}

TEST_F(StagingTest, NamesAMissingSourceAndLeavesNoHalfCopy) {
  ASSERT_THAT(RemoveTree(SourceOf(5)), IsOk());

  EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kNotFound,
                                AllOf(HasSubstr(SourceOf(5)), HasSubstr("of 10 files"))));
  EXPECT_FALSE(FileExists(CopyOf(5)));
}

TEST_F(StagingTest, RefusesAFolderInPlaceOfASample) {
  ASSERT_THAT(RemoveTree(SourceOf(5)), IsOk());
  ASSERT_THAT(MakeDirectories(SourceOf(5)), IsOk());

  EXPECT_THAT(Stage(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  EXPECT_FALSE(FileExists(CopyOf(5) + ".staging"));
}

TEST_F(StagingTest, RefusesAFolderInPlaceOfACopy) {
  ASSERT_THAT(MakeDirectories(CopyOf(2)), IsOk());

  EXPECT_FALSE(Stage().ok());
  EXPECT_FALSE(FileExists(CopyOf(2) + ".staging"));
}

// sysfs takes no direct reads.
TEST_F(StagingTest, ReadsThroughThePageCacheWhereThereIsNoOtherWay) {
  job_.source_dir = "/sys/kernel/btf";
  job_.files = {{.name = "vmlinux"}};
  job_.is_cold = true;
  if (!FileExists("/sys/kernel/btf/vmlinux")) GTEST_SKIP() << "a kernel without BTF";

  ASSERT_THAT(Stage(), IsOk());

  EXPECT_EQ(ResidentPages(CopyOf(0)), 0U);
  EXPECT_TRUE(ReadFile(CopyOf(0), int64_t{1} << 28).value() ==
              ReadFile("/sys/kernel/btf/vmlinux", int64_t{1} << 28).value());
}

TEST_F(StagingTest, ComparesWithTheManifestsDigest) {
  for (size_t i = 0; i < job_.files.size(); ++i)
    job_.files[i].sha256 = Sha256Hex(Content(i));
  EXPECT_THAT(Stage(), IsOk());
  ASSERT_THAT(RemoveTree(CopyOf(6)), IsOk());
  std::string damaged = Content(6);
  damaged[100] ^= 1;
  WriteFile(SourceOf(6), damaged);

  EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kDataLoss,
                                AllOf(HasSubstr(SourceOf(6)), HasSubstr(Sha256Hex(damaged)),
                                      HasSubstr("read twice"))));
  EXPECT_FALSE(FileExists(CopyOf(6)));
  EXPECT_FALSE(FileExists(CopyOf(6) + ".staging"));
}

// Calls `at_third` when it is asked for the third time: after a file's first piece.
class CountingClock final : public Clock {
 public:
  explicit CountingClock(std::function<void()> at_third) : at_third_(std::move(at_third)) {}
  absl::Time Wall() const override { return {}; }
  MonoTime Mono() const override {
    if (++calls_ == 3) at_third_();
    return {calls_};
  }

 private:
  const std::function<void()> at_third_;
  mutable std::atomic<int64_t> calls_ = 0;
};

TEST_F(StagingTest, ReadsAFileAgainWhoseBytesWereDamagedOnTheWay) {
  job_.files = {{.name = job_.files[6].name, .sha256 = Sha256Hex(Content(6))}};
  WriteFile(SourceOf(0), std::string(Content(6).size(), 'x'));
  const CountingClock clock([&] { WriteFile(SourceOf(0), Content(6)); });

  const absl::StatusOr<Staged> staged = StageFiles(job_, &clock);

  ASSERT_THAT(staged, IsOk());
  EXPECT_EQ(staged->retries, 1);
  EXPECT_EQ(staged->bytes, static_cast<int64_t>(Content(6).size()));
  EXPECT_THAT(ReadFile(CopyOf(0)), IsOkAndHolds(Content(6)));
}

TEST_F(StagingTest, RefusesAFileOfAnotherSizeThanTheManifestSays) {
  job_.files[6].bytes = 6000;

  EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kDataLoss,
                                AllOf(HasSubstr(SourceOf(6)), HasSubstr("has 6001 bytes"),
                                      HasSubstr("says 6000"))));
}

TEST_F(StagingTest, WhatDoesNotFitIsSaidBeforeTheFirstByte) {
  EXPECT_THAT(CheckStagingSpace(job_), IsOk());
  job_.files[3].bytes = int64_t{1} << 50;
  EXPECT_THAT(CheckStagingSpace(job_),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("staging takes 11258"), HasSubstr(target_.path()),
                             HasSubstr("GB are free"))));
  // Little by itself, but all ranks of the node want it.
  job_.files[3].bytes = int64_t{1} << 30;
  EXPECT_THAT(CheckStagingSpace(job_), IsOk());
  job_.ranks_on_node = 1 << 20;
  EXPECT_THAT(CheckStagingSpace(job_), StatusIs(absl::StatusCode::kResourceExhausted));
}

// Somebody else may fill the disk after the space was looked at.
TEST_F(StagingTest, ADiskThatFillsUpIsNamedAndGetsItsSpaceBack) {
  if (mount("tmpfs", target_.path().c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "mounting takes root";
  for (const bool is_cold : {true, false}) {
    job_.is_cold = is_cold;
    // Several are copied at once: which of the last two found no room is up to the disks.
    EXPECT_THAT(Stage(), StatusIs(absl::StatusCode::kResourceExhausted,
                                  AllOf(AnyOf(HasSubstr(CopyOf(6)), HasSubstr(CopyOf(7))),
                                        HasSubstr("free space there"))));
    for (const std::string folder : {"train", "validation"}) {
      const std::vector<std::string> names = ListDirectory(target_.Path(folder)).value();
      for (const std::string& name : names)
        EXPECT_FALSE(absl::EndsWith(name, ".staging")) << name;
    }
  }
  EXPECT_EQ(umount2(target_.path().c_str(), MNT_DETACH), 0);
}

TEST_F(StagingTest, ASourceThatIsMissingIsFoundBeforeTheFirstByte) {
  ASSERT_THAT(RemoveTree(SourceOf(5)), IsOk());

  EXPECT_THAT(CheckStagingSpace(job_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(SourceOf(5))));
}

// Sizes around those of blocks, pages and buffers, and any others; windows from 1 to 128.
class StagingPropertyTest : public ::testing::TestWithParam<int> {};

TEST_P(StagingPropertyTest, CopiesAreTheSameAndColdOnesNotInMemory) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  const TempDir source, target;
  std::vector<size_t> sizes = {0, 1, 511, 512, 4095, 4096, 4097};
  for (const size_t size : {size_t{2} << 20, size_t{6} << 20})
    sizes.insert(sizes.end(), {size - 4097, size - 1, size, size + 1, size + 4096});
  for (int i = 0; i < 150; ++i)
    sizes.push_back(random() % (size_t{1} << (random() % 20)));
  StagingJob job = {.source_dir = source.path(),
                    .target_dir = target.path(),
                    .ranks_on_node = 1 << (random() % 8),
                    .is_cold = GetParam() % 2 == 0};
  std::vector<std::string> contents;
  for (const size_t size : sizes) {
    std::string& content = contents.emplace_back(size, '\0');
    for (char& byte : content)
      byte = static_cast<char>(random());
    job.files.push_back({.name = absl::StrCat(contents.size())});
    WriteFile(source.Path(job.files.back().name), content);
  }
  const RealClock clock;

  ASSERT_THAT(StageFiles(job, &clock), IsOk());

  for (size_t i = 0; i < contents.size(); ++i) {
    const std::string path = target.Path(job.files[i].name);
    if (job.is_cold) {
      EXPECT_EQ(ResidentPages(path), 0U) << sizes[i];
    }
    EXPECT_TRUE(ReadFile(path, int64_t{1} << 24).value() == contents[i]) << sizes[i];
  }
  EXPECT_EQ(ListDirectory(target.path()).value().size(), contents.size());
}

INSTANTIATE_TEST_SUITE_P(Seeds, StagingPropertyTest, ::testing::Range(0, 6));

TEST_F(StagingTest, StagesNothingWhenThereIsNothing) {
  job_.files.clear();

  EXPECT_THAT(Stage(), IsOk());
}

}  // namespace
}  // namespace assay::data
