// That caches are cold after a reset, with what keeps them warm as negative control.

#include "worker/agent/cold_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/agent/sidecar.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::IsOkAndHolds;
using ::testing::Not;

constexpr size_t kFileBytes = 1 << 20;

// Without the power over all caches, so that no test disturbs another.
class ColdStartTest : public ::testing::Test {
 protected:
  ColdStartTest() {
    CHECK_OK(MakeDirectories(dir_.Path("data/train")));
    for (const char* name : {"a", "b"})
      CHECK_OK(WriteFileAtomic(Path(name), std::string(kFileBytes, 'x')));
  }
  std::string Path(const std::string& name) const { return dir_.Path("data/train/" + name); }
  ColdStart Make(ResidencyOptions residency = {}) {
    const absl::StatusOr<ColdStart> start =
        MakeCold({.dataset_directory = dir_.Path("data"),
                  .sample_folders = {dir_.Path("data/train")},
                  .drop_caches_path = "/nonexistent/drop_caches",
                  .residency = std::move(residency)},
                 clock_);
    EXPECT_THAT(start, IsOk());
    return start.ok() ? *start : ColdStart{};
  }
  std::string Metadata(const ColdStart& start) {
    return DumpJson(JsonValue(CacheClearMetadata(start)));
  }

  const testing::TempDir dir_;
  const RealClock clock_{};
};

// Also of files that were just written: only clean pages can be given up.
TEST_F(ColdStartTest, WhatNobodyHoldsIsCold) {
  const UniqueFd file(open(Path("new").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_THAT(WriteAll(file.get(), std::string(kFileBytes, 'x')), IsOk());

  const ColdStart start = Make();

  EXPECT_EQ(ColdnessOf(start), Coldness::kCold) << WhyWarm(start);
  EXPECT_EQ(start.tries, 1);
  EXPECT_EQ(start.residency.checked_files, 3);
  EXPECT_THAT(Metadata(start),
              AllOf(HasSubstr("\"resident_pages\": 0"), HasSubstr("\"checked_files\": 3"),
                    HasSubstr("\"bound_bytes\": ")));
  EXPECT_EQ(RefusalOf(start, "closed"), std::nullopt);
}

TEST_F(ColdStartTest, WhoMapsAFileIsNamed) {
  for (const Keeps how : {Keeps::kMapped, Keeps::kLocked, Keeps::kDirty}) {
    SCOPED_TRACE(static_cast<int>(how));
    const Sidecar sidecar(Path("b"), how);

    const ColdStart start = Make();

    EXPECT_EQ(ColdnessOf(start), Coldness::kWarm);
    EXPECT_EQ(start.tries, 2);
    EXPECT_EQ(start.residency.pages.resident,
              static_cast<int64_t>(kFileBytes) / sysconf(_SC_PAGESIZE));
    EXPECT_THAT(WhyWarm(start),
                AllOf(HasSubstr(Path("b")), HasSubstr(absl::StrCat("(pid ", sidecar.pid())),
                      Not(HasSubstr(Path("a")))));
    EXPECT_EQ(RefusalOf(start, "open"), std::nullopt);
  }
  EXPECT_EQ(ColdnessOf(Make()), Coldness::kCold) << "they have ended";
}

TEST_F(ColdStartTest, ASmallRestOfALargeDatasetIsProofEnough) {
  ColdStart start;
  start.residency = {.file_count = 1000, .checked_files = 1000, .checked_bytes = 1'000'000'000};
  start.residency.pages.resident = 1'000'000 / sysconf(_SC_PAGESIZE) + 1;
  start.bound_bytes = 1'000'001;
  EXPECT_EQ(ColdnessOf(start), Coldness::kWarm);
  start.bound_bytes = 1'000'000;
  EXPECT_EQ(ColdnessOf(start), Coldness::kBounded);
  start.file_system.is_page_cache = false;
  EXPECT_EQ(ColdnessOf(start), Coldness::kWarm) << "what the page cache has bounds no other cache";
}

TEST_F(ColdStartTest, APageThatTheKernelWorksWithRefusesNoRun) {
  ColdStart start;
  start.residency = {.file_count = 1000, .checked_files = 1000, .checked_bytes = 1'000'000'000};
  start.residency.pages.resident = 1'000'000 / sysconf(_SC_PAGESIZE);
  EXPECT_EQ(ColdnessOf(start), Coldness::kBounded);
  EXPECT_EQ(RefusalOf(start, "closed"), std::nullopt);
  start.residency.file_count = 1001;
  EXPECT_EQ(ColdnessOf(start), Coldness::kWarm) << "of a sample that is no bound";
}

TEST_F(ColdStartTest, WhereTheKernelTellsNothingNothingIsClaimed) {
  ResidencyOptions residency;
  residency.count = [](int) { return absl::PermissionDeniedError("not yours"); };
  const ColdStart start = Make(residency);
  EXPECT_EQ(ColdnessOf(start), Coldness::kUnknown);
  EXPECT_EQ(RefusalOf(start, "closed"), std::nullopt);
  EXPECT_THAT(Metadata(start), Not(HasSubstr("resident_pages")));
}

TEST_F(ColdStartTest, TheClosedDivisionDoesNotStartWarm) {
  ColdStart start;
  start.residency = {.file_count = 1, .checked_files = 1, .checked_bytes = 1};
  start.residency.pages.resident = 1;
  ASSERT_TRUE(RefusalOf(start, "closed").has_value());
  EXPECT_EQ(RefusalOf(start, "closed")->code, static_cast<int>(ExitCode::kNodeFailed));
  EXPECT_EQ(RefusalOf(start, "open"), std::nullopt);
  start.other_step_count = 1;
  EXPECT_EQ(RefusalOf(start, "closed"), std::nullopt) << "agents share this machine";
  start.file_system = {.type = "tmpfs", .is_memory = true};
  ASSERT_TRUE(RefusalOf(start, "closed").has_value());
  EXPECT_EQ(RefusalOf(start, "closed")->code, static_cast<int>(ExitCode::kBadData));
}

TEST(CachedFileBytesTest, SharedMemoryIsNoFile) {
  EXPECT_EQ(CachedFileBytes("MemTotal: 9 kB\nCached:   100 kB\nShmem:  40 kB\n"), 60 * 1024);
  EXPECT_EQ(CachedFileBytes("Cached: 1 kB\nShmem: 2 kB\n"), 0);
  EXPECT_EQ(CachedFileBytes("Cached: 1 kB\n"), std::nullopt);
}

TEST(FileSystemTest, CachesThatAResetDoesNotReachAreTold) {
  EXPECT_THAT(FileSystemOfType(0xEF53, false).unknown_caches, IsEmpty());
  EXPECT_THAT(FileSystemOfType(0xEF53, true).unknown_caches,
              ElementsAre(HasSubstr("the host's cache")));
  EXPECT_THAT(FileSystemOfType(0x6969, false).unknown_caches,
              ElementsAre(HasSubstr("nfs: the server's cache is not reset and not known")));
  EXPECT_TRUE(FileSystemOfType(0x6969, false).is_page_cache);
  for (const long type : {0x794C7630L, 0x65735546L, 0x2FC12FC1L, 0x47504653L}) {
    EXPECT_FALSE(FileSystemOfType(type, false).is_page_cache) << type;
    EXPECT_THAT(FileSystemOfType(type, false).unknown_caches, Not(IsEmpty())) << type;
  }
  EXPECT_TRUE(FileSystemOfType(0x01021994, false).is_memory);
  for (const long type : {0xEF53L, 0x01021994L})
    EXPECT_TRUE(FileSystemOfType(type, false).is_local) << type;
  for (const long type : {0x6969L, 0x47504653L, 0x1234L})
    EXPECT_FALSE(FileSystemOfType(type, false).is_local) << type;
  EXPECT_THAT(FileSystemOfType(0x1234, false).unknown_caches,
              ElementsAre(HasSubstr("file system 0x1234")));
}

}  // namespace
}  // namespace assay::agent
