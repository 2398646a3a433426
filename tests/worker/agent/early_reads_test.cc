// Bytes that were read before a first touch, on trees of /proc as the kernel writes them.

#include "worker/agent/early_reads.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::IsOk;
using ::testing::Not;

constexpr int64_t kMiB = 1 << 20;

class EarlyReadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"proc/self", "proc/71", "proc/72", "data/train"})
      ASSERT_THAT(MakeDirectories(dir_.Path(folder)), IsOk());
    // With a hole: it has the size of a library.
    for (const std::string& file : {library_, sample_}) {
      std::ofstream(file).put('x');
      std::filesystem::resize_file(file, 3 * kMiB);
    }
  }
  // In place: what is counted stays open.
  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(dir_.Path("proc/" + file)) << text;
  }
  void Process(int pid, int64_t asked, int64_t storage, const std::string& mapped) const {
    Write(absl::StrCat(pid, "/io"),
          absl::StrCat("rchar: ", asked, "\nwchar: 5\nsyscr: 1\nsyscw: 1\nread_bytes: ", storage,
                       "\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"));
    Write(absl::StrCat(pid, "/maps"), absl::StrCat("7f01-7f02 r-xp 00000000 fe:00 12 ", mapped,
                                                   "\n7f02-7f03 rw-p 00001000 fe:00 12 ", mapped,
                                                   "\n7ffc-7ffd rw-p 00000000 00:00 0 [stack]\n"));
  }
  void Server(int64_t read) const {
    Write("self/mountstats",
          absl::StrCat("device srv:/data mounted on /data with fstype nfs4 statvers=1.1\n"
                       "\tbytes:\t9 9 9 9 ",
                       read, " 0 1 1\n"));
  }
  EarlyReads Begin(int64_t dataset_bytes = 0) const {
    return EarlyReads({.proc = dir_.Path("proc"),
                       .sys = dir_.Path("sys"),
                       .roots = {dir_.Path("data/train")},
                       .dataset_bytes = dataset_bytes});
  }

  const testing::TempDir dir_;
  const std::string library_ = dir_.Path("library.so");
  const std::string sample_ = dir_.Path("data/train/a.bin");
  const testing::FakeClock clock_;
};

TEST_F(EarlyReadsTest, ProcessesAreAddedUpAndEachFileIsMappedOnce) {
  Process(71, 500, 4 * kMiB, library_);
  Process(72, 70, kMiB, library_);
  EarlyReads reads = Begin();

  const RunReads counted = reads.Now({71, 72, 73}, clock_);  // the last has ended

  EXPECT_EQ(counted.storage, 5 * kMiB);
  EXPECT_EQ(counted.asked, 570);
  EXPECT_EQ(counted.mapped, 3 * kMiB);
  EXPECT_EQ(counted.servers, std::nullopt) << "this node has none";
  EXPECT_FALSE(reads.HoleOf(counted).has_value());
}

TEST_F(EarlyReadsTest, WhatNothingExplainsIsAHole) {
  EarlyReads reads = Begin();
  Process(71, 0, 11 * kMiB, library_);
  EXPECT_FALSE(reads.HoleOf(reads.Now({71}, clock_)).has_value()) << "8 MiB are allowed for";

  Process(71, 0, 11 * kMiB + 1, library_);
  const std::optional<WitnessHole> hole = reads.HoleOf(reads.Now({71}, clock_));
  ASSERT_TRUE(hole.has_value());
  EXPECT_EQ(hole->code, "W-DEVICE");
  EXPECT_THAT(hole->why, AllOf(HasSubstr("read 11.0 MiB from storage"),
                               HasSubstr("map have 3.0 MiB"), Not(HasSubstr("servers"))));
}

TEST_F(EarlyReadsTest, MappingTheDatasetExplainsNothing) {
  EarlyReads reads = Begin();
  Process(71, 0, 11 * kMiB, sample_);
  const RunReads counted = reads.Now({71}, clock_);
  EXPECT_EQ(counted.mapped, 0);
  EXPECT_TRUE(reads.HoleOf(counted).has_value());
}

TEST_F(EarlyReadsTest, WhatServersSentSinceTheWatchBeganIsTold) {
  Server(700 * kMiB);
  EarlyReads reads = Begin();
  Server(709 * kMiB);
  const RunReads counted = reads.Now({}, clock_);
  EXPECT_EQ(counted.servers, 9 * kMiB);
  EXPECT_EQ(counted.storage, std::nullopt);
  ASSERT_TRUE(reads.HoleOf(counted).has_value());
  EXPECT_THAT(reads.HoleOf(counted)->why, HasSubstr("sent this node 9.0 MiB"));
}

TEST_F(EarlyReadsTest, OfALargeDatasetAThousandthIsAllowed) {
  EarlyReads reads = Begin(100'000 * kMiB);
  Process(71, 0, 100 * kMiB, "/no/such/library.so");
  EXPECT_FALSE(reads.HoleOf(reads.Now({71}, clock_)).has_value());
  Process(71, 0, 101 * kMiB, "/no/such/library.so");
  EXPECT_TRUE(reads.HoleOf(reads.Now({71}, clock_)).has_value());
}

}  // namespace
}  // namespace assay::agent
