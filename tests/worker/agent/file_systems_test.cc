// What is witnessed and copied, on file systems other than that of temporary files: each is made in
// an image on a loop device, whose raw device may be opened, too (witness 1.1 and W2 to W5).

#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using testing::IsOk;
using testing::IsOkAndHolds;
using testing::TempDir;

constexpr absl::Duration kPatience = absl::Minutes(5);  // for a hang
constexpr off_t kImageBytes = off_t{512} << 20;

struct FileSystemCase {
  std::string name;
  std::vector<std::string> make;  // before the image's path
};

std::vector<FileSystemCase> Cases() {
  // Pages as large as blocks: of smaller blocks mincore and cachestat count the last page apart.
  return {{"ext4", {"/sbin/mkfs.ext4", "-q", "-F", "-b", "4096"}},
          {"xfs", {"/sbin/mkfs.xfs", "-q"}},
          {"btrfs", {"/sbin/mkfs.btrfs", "-q"}}};
}

class FileSystemsTest : public ::testing::TestWithParam<FileSystemCase> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root may mount";
    if (!FileExists(GetParam().make.front())) {
      ASSERT_EQ(std::getenv("CI"), nullptr) << GetParam().make.front() << " is missing";
      GTEST_SKIP() << GetParam().make.front() << " is missing";
    }
    const std::string image = dir_.Path("image");
    ASSERT_THAT(WriteFileAtomic(image, ""), IsOk());
    ASSERT_EQ(truncate(image.c_str(), kImageBytes), 0);
    std::vector<std::string> make = GetParam().make;
    make.push_back(image);
    ASSERT_THAT(ExitOf({.argv = make}), IsOkAndHolds(0));
    ASSERT_THAT(MakeDirectories(mounted_), IsOk());
    const std::string said = dir_.Path("said");
    const absl::StatusOr<int> exit =
        ExitOf({.argv = {"/bin/mount", "-o", "loop", image, mounted_}, .output_path = said});
    ASSERT_THAT(exit, IsOk());
    if (*exit != 0) GTEST_SKIP() << ReadFile(said).value_or("no mount");
    is_mounted_ = true;
  }
  void TearDown() override {
    if (!is_mounted_) return;
    EXPECT_EQ(umount2(mounted_.c_str(), 0), 0) << "something still uses it";
  }

  static absl::StatusOr<int> ExitOf(const SpawnOptions& options) {
    absl::StatusOr<ProcessId> child = Spawn(options);
    if (!child.ok()) return child.status();
    return WaitForExit(*child, kPatience);
  }
  // A test program, whose temporary files lie there.
  void Expect(const std::string& program, const std::string& filter) const {
    const std::string said = dir_.Path("output");
    EXPECT_THAT(ExitOf({.argv = {program, absl::StrCat("--gtest_filter=", filter)},
                        .environment = {absl::StrCat("TMPDIR=", mounted_)},
                        .output_path = said}),
                IsOkAndHolds(0))
        << ReadFile(said).value_or("it said nothing");
    EXPECT_THAT(RemoveTree(said), IsOk());
  }

  const TempDir dir_;
  const std::string mounted_ = dir_.Path("mounted");
  bool is_mounted_ = false;
};

TEST_P(FileSystemsTest, FirstTouchesAreHeldAndSeen) {
  Expect(GATE_TEST, "*");
  Expect(WORKER_AGENT_TEST, "FileSystemWatch*:TouchMonitor*");
}

TEST_P(FileSystemsTest, WhatIsInMemoryIsKnown) {
  Expect(WORKER_AGENT_TEST, "Residency*:ColdStart*:StageCheck*:CacheReset*");
}

TEST_P(FileSystemsTest, CopiesAreWholeAndCold) {
  // The one that is left out counts on a disk larger than the image.
  Expect(WORKER_DATA_TEST, "*Staging*:CopyWindow*-*WhatDoesNotFitIsSaidBeforeTheFirstByte");
  Expect(WORKER_CACHE_TEST, "*");
}

INSTANTIATE_TEST_SUITE_P(On, FileSystemsTest, ::testing::ValuesIn(Cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace assay
