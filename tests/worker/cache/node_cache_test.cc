#include "worker/cache/node_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/dataset/pack.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "tests/worker/cache/cached_dataset.h"
#include "worker/cache/cache_link.h"

namespace assay::cache {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kFileBytes = 10'000;
constexpr int kFiles = 5;
constexpr int64_t kDatasetBytes = kFiles * kFileBytes;

// A second passes each time somebody looks.
class TickingClock final : public Clock {
 public:
  TickingClock() = default;
  absl::Time Wall() const override { return absl::UnixEpoch(); }
  MonoTime Mono() const override { return MonoTime{++ticks_ * 1'000'000'000}; }

 private:
  mutable std::atomic<int64_t> ticks_ = 0;
};

class NodeCacheTest : public ::testing::Test {
 protected:
  NodeCache Cache(int64_t quota_bytes = 3 * kDatasetBytes) {
    absl::StatusOr<NodeCache> cache =
        NodeCache::Open({.directory = dir_.Path("cache"), .quota_bytes = quota_bytes});
    EXPECT_THAT(cache, IsOk());
    return *std::move(cache);
  }

  std::string FilesOf(const SmallDataset& dataset) const {
    return NodeCache::FilesPath(dir_.Path("cache"), dataset.digest());
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const std::vector<CachedDataset> list = Cache().List().value();
    for (const CachedDataset& dataset : list)
      names.push_back(dataset.name);
    return names;
  }

  // A byte of a file of a_ in the cache, as a device does it: size and time stay.
  void Flip(const std::string& name) const {
    const UniqueFd fd(open(JoinPath(FilesOf(a_), name).c_str(), O_WRONLY));
    struct stat before {};
    ASSERT_EQ(fstat(fd.get(), &before), 0);
    ASSERT_EQ(pwrite(fd.get(), "!", 1, kFileBytes / 2), 1);
    const timespec times[] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(futimens(fd.get(), times), 0);
  }

  // Uses follow each other by more than the file system's clock can tell.
  void SetUsed(const SmallDataset& dataset, int seconds) const {
    const timespec times[] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD,
                        JoinPath(JoinPath(dir_.Path("cache"), dataset.digest()), "used").c_str(),
                        times, 0),
              0);
  }

  absl::StatusOr<Linked> LinkTo(const std::string& target, const Lease& lease,
                                absl::Duration budget = absl::Minutes(1)) {
    return LinkDataset(lease, {.target_dir = target, .seed = 1, .budget = budget}, clock_);
  }

  const RealClock clock_{};
  const TempDir dir_;
  const SmallDataset a_{"a", kFiles, kFileBytes};
  const SmallDataset b_{"b", kFiles, kFileBytes};
  const SmallDataset c_{"c", kFiles, kFileBytes};
};

TEST_F(NodeCacheTest, HoldsWhatTheManifestSays) {
  NodeCache cache = Cache();

  const absl::StatusOr<Filled> filled = cache.Stage(a_.path(), &clock_);

  ASSERT_THAT(filled, IsOk());
  EXPECT_EQ(filled->digest, a_.digest());
  EXPECT_EQ(filled->staged.bytes, kDatasetBytes);
  EXPECT_EQ(DifferentFiles(a_, FilesOf(a_)), 0);
  const std::vector<CachedDataset> list = cache.List().value();
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].name, "a");
  EXPECT_EQ(list[0].bytes, kDatasetBytes);
  EXPECT_EQ(list[0].files, kFiles + 1);
  EXPECT_EQ(list[0].files_total, kFiles + 1);
  EXPECT_GT(list[0].used, absl::Now() - absl::Hours(1));
  EXPECT_FALSE(list[0].is_pinned);
  EXPECT_FALSE(list[0].is_held);
}

TEST_F(NodeCacheTest, ASecondTimeNothingIsCopied) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());

  const absl::StatusOr<Filled> again = cache.Stage(a_.path(), &clock_);

  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->staged.files, 0);
  EXPECT_EQ(again->files_there, kFiles + 1);
  EXPECT_EQ(again->bytes_there, kDatasetBytes);
}

// And what was there is not written again.
TEST_F(NodeCacheTest, FromArchivesItIsTheSameDataset) {
  ASSERT_THAT(dataset::PackDataset(a_.path(), dir_.Path("packed"),
                                   {.codec = dataset::ShardCodec::kZstd, .shard_bytes = 20'000}),
              IsOk());
  NodeCache cache = Cache();

  const absl::StatusOr<Filled> filled = cache.Stage(dir_.Path("packed"), &clock_);

  ASSERT_THAT(filled, IsOk());
  EXPECT_EQ(filled->digest, a_.digest());
  EXPECT_EQ(filled->staged.bytes, kDatasetBytes);
  EXPECT_EQ(DifferentFiles(a_, FilesOf(a_)), 0);
  WriteFile(JoinPath(FilesOf(a_), "train/1000"), std::string(kFileBytes, '!'));
  // Of what is there already no archive is read.
  ASSERT_EQ(unlink(dir_.Path("packed/shards/00002.tar.zst").c_str()), 0);
  const absl::StatusOr<Filled> again = cache.Stage(dir_.Path("packed"), &clock_);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->staged.files, 1);
  EXPECT_EQ(DifferentFiles(a_, FilesOf(a_)), 0);
}

TEST_F(NodeCacheTest, AFileThatWasChangedSinceIsCopiedAgain) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  WriteFile(JoinPath(FilesOf(a_), "train/1000"), std::string(kFileBytes, '!'));

  const absl::StatusOr<Filled> again = cache.Stage(a_.path(), &clock_);

  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->staged.files, 1);
  EXPECT_EQ(DifferentFiles(a_, FilesOf(a_)), 0);
}

TEST_F(NodeCacheTest, TheLongestUnusedGoesFirst) {
  NodeCache cache = Cache(2 * kDatasetBytes);
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  ASSERT_THAT(cache.Stage(b_.path(), &clock_), IsOk());
  SetUsed(a_, 100);
  SetUsed(b_, 50);

  const absl::StatusOr<Filled> filled = cache.Stage(c_.path(), &clock_);

  ASSERT_THAT(filled, IsOk());
  EXPECT_THAT(filled->evicted, ElementsAre(HasSubstr("b (")));
  EXPECT_THAT(Names(), UnorderedElementsAre("a", "c"));
  EXPECT_FALSE(FileExists(FilesOf(b_)));
}

TEST_F(NodeCacheTest, HoldingIsAUse) {
  NodeCache cache = Cache(2 * kDatasetBytes);
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  ASSERT_THAT(cache.Stage(b_.path(), &clock_), IsOk());
  SetUsed(a_, 50);
  SetUsed(b_, 100);
  ASSERT_THAT(cache.Hold(a_.digest()), IsOk());

  ASSERT_THAT(cache.Stage(c_.path(), &clock_), IsOk());

  EXPECT_THAT(Names(), UnorderedElementsAre("a", "c"));
}

// The quota is full of what must stay: nothing goes, not even what might, since it would not do.
TEST_F(NodeCacheTest, WhatIsPinnedOrHeldSurvivesAFullCache) {
  NodeCache cache = Cache(3 * kDatasetBytes);
  for (const SmallDataset* dataset : {&a_, &b_, &c_})
    ASSERT_THAT(cache.Stage(dataset->path(), &clock_), IsOk());
  ASSERT_THAT(cache.SetPinned(a_.digest(), true), IsOk());
  const absl::StatusOr<Lease> lease = cache.Hold(b_.digest());
  ASSERT_THAT(lease, IsOk());
  const SmallDataset large("large", 2 * kFiles, kFileBytes);

  EXPECT_THAT(cache.Stage(large.path(), &clock_),
              StatusIs(absl::StatusCode::kAborted, AllOf(HasSubstr("a ("), HasSubstr("pinned"),
                                                         HasSubstr("b ("), HasSubstr("in use"))))
      << "once its run has ended, b could go";
  const SmallDataset larger("larger", 2 * kFiles + 1, kFileBytes);
  EXPECT_THAT(cache.Stage(larger.path(), &clock_),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("raise the quota")));

  for (const SmallDataset* dataset : {&a_, &b_, &c_})
    EXPECT_EQ(DifferentFiles(*dataset, FilesOf(*dataset)), 0);
  EXPECT_THAT(cache.Evict(a_.digest()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("unpin")));
  EXPECT_THAT(cache.Evict(b_.digest()), StatusIs(absl::StatusCode::kAborted, HasSubstr("held")));
}

TEST_F(NodeCacheTest, WhatIsUnpinnedAndLetGoCanBeEvicted) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  ASSERT_THAT(cache.SetPinned(a_.digest(), true), IsOk());
  ASSERT_THAT(cache.SetPinned(a_.digest(), false), IsOk());
  { ASSERT_THAT(cache.Hold(a_.digest()), IsOk()); }

  EXPECT_THAT(cache.Evict(a_.digest()), IsOk());

  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_THAT(cache.Evict(a_.digest()), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(cache.Hold(a_.digest()), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(NodeCacheTest, TwoRunsHoldOneDatasetAndNobodyFillsItMeanwhile) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  const absl::StatusOr<Lease> one = cache.Hold(a_.digest());
  const absl::StatusOr<Lease> other = Cache().Hold(a_.digest());
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(other, IsOk());

  EXPECT_THAT(cache.Stage(a_.path(), &clock_), StatusIs(absl::StatusCode::kAborted));

  const absl::StatusOr<Linked> first = LinkTo(dir_.Path("stage1"), *one);
  const absl::StatusOr<Linked> second = LinkTo(dir_.Path("stage2"), *other);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(DifferentFiles(a_, dir_.Path("stage1")), 0);
  EXPECT_EQ(DifferentFiles(a_, dir_.Path("stage2")), 0);
}

TEST_F(NodeCacheTest, LinkedFilesTakeNoSpaceAndAreCheckedAndOutOfMemory) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  const absl::StatusOr<Lease> lease = cache.Hold(a_.digest());
  ASSERT_THAT(lease, IsOk());
  ASSERT_THAT(ReadFile(JoinPath(lease->files_path, "train/1000")), IsOk());  // now in memory

  const absl::StatusOr<Linked> linked = LinkTo(dir_.Path("stage"), *lease);

  ASSERT_THAT(linked, IsOk());
  EXPECT_EQ(linked->files, kFiles + 1);
  EXPECT_EQ(linked->bytes, kDatasetBytes);
  EXPECT_EQ(linked->checked_files, kFiles + 1);
  EXPECT_THAT(linked->damaged, IsEmpty());
  struct stat info {};
  ASSERT_EQ(stat(dir_.Path("stage/train/1000").c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 2U);
  const UniqueFd fd(open(dir_.Path("stage/train/1000").c_str(), O_RDONLY));
  void* const map = mmap(nullptr, kFileBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  std::vector<unsigned char> pages(3);
  ASSERT_EQ(mincore(map, kFileBytes, pages.data()), 0);
  munmap(map, kFileBytes);
  EXPECT_EQ((pages[0] | pages[1] | pages[2]) & 1, 0);
}

// Flipped on the device, as size and time do not tell: it is found, named, not used, and copied
// anew by the next staging.
TEST_F(NodeCacheTest, AFlippedByteIsFound) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  Flip("train/1003");
  {
    const absl::StatusOr<Lease> lease = cache.Hold(a_.digest());
    ASSERT_THAT(lease, IsOk());

    const absl::StatusOr<Linked> linked = LinkTo(dir_.Path("stage"), *lease);

    ASSERT_THAT(linked, IsOk());
    EXPECT_THAT(linked->damaged, ElementsAre("train/1003"));
    EXPECT_EQ(linked->files, kFiles);
    EXPECT_FALSE(FileExists(dir_.Path("stage/train/1003")));
  }
  const absl::StatusOr<Filled> filled = cache.Stage(a_.path(), &clock_);
  ASSERT_THAT(filled, IsOk());
  EXPECT_EQ(filled->staged.files, 1);
  EXPECT_EQ(DifferentFiles(a_, FilesOf(a_)), 0);
}

// Nothing of a dataset that has damage is used unseen, however large it is.
TEST_F(NodeCacheTest, AfterDamageOnlyWhatWasCheckedIsUsed) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  for (int i = 0; i < kFiles; ++i)
    Flip(absl::StrCat("train/", 1000 + i));
  const absl::StatusOr<Lease> lease = cache.Hold(a_.digest());
  ASSERT_THAT(lease, IsOk());
  const TickingClock ticking;  // a second for each look: time for two or three files

  const absl::StatusOr<Linked> linked = LinkDataset(
      *lease, {.target_dir = dir_.Path("stage"), .seed = 1, .budget = absl::Seconds(4)}, ticking);

  ASSERT_THAT(linked, IsOk());
  EXPECT_GE(linked->damaged.size(), 1U);
  EXPECT_LT(linked->damaged.size(), size_t{kFiles});
  EXPECT_EQ(linked->files, linked->checked_files);
}

TEST_F(NodeCacheTest, AllOfItCanBeVerified) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  Flip("train/1001");
  WriteFile(JoinPath(FilesOf(a_), "train/1002"), "changed");
  {
    const absl::StatusOr<Lease> lease = cache.Hold(a_.digest());
    ASSERT_THAT(lease, IsOk());

    const absl::StatusOr<Verified> verified = VerifyCached(*lease, [] { return false; });

    ASSERT_THAT(verified, IsOk());
    EXPECT_THAT(verified->damaged, ElementsAre("train/1001"));
    EXPECT_EQ(verified->changed_files, 1);
    EXPECT_EQ(verified->files, kFiles);
  }
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  EXPECT_EQ(DifferentFiles(a_, FilesOf(a_)), 0);
}

TEST_F(NodeCacheTest, WhereThereIsNoTimeItSaysWhatWasChecked) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  const absl::StatusOr<Lease> lease = cache.Hold(a_.digest());
  ASSERT_THAT(lease, IsOk());

  const absl::StatusOr<Linked> linked = LinkTo(dir_.Path("stage"), *lease, absl::ZeroDuration());

  ASSERT_THAT(linked, IsOk());
  EXPECT_EQ(linked->files, kFiles + 1);
  EXPECT_EQ(linked->checked_files, 0);
}

TEST_F(NodeCacheTest, ADirectoryThatOthersCanWriteIsRefused) {
  ASSERT_THAT(MakeDirectories(dir_.Path("open")), IsOk());
  ASSERT_EQ(chmod(dir_.Path("open").c_str(), 0777), 0);

  EXPECT_THAT(NodeCache::Open({.directory = dir_.Path("open"), .quota_bytes = 1}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("0700")));
}

TEST_F(NodeCacheTest, DatasetsAreFoundByNameAndBeginningOfTheDigest) {
  NodeCache cache = Cache();
  ASSERT_THAT(cache.Stage(a_.path(), &clock_), IsOk());
  ASSERT_THAT(cache.Stage(b_.path(), &clock_), IsOk());

  EXPECT_EQ(cache.Find("a").value_or(""), a_.digest());
  EXPECT_EQ(cache.Find(b_.digest().substr(0, 12)).value_or(""), b_.digest());
  EXPECT_THAT(cache.Find("nothing"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace assay::cache
