#include "worker/agent/residency.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <string>

#include "absl/status/status.h"
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
using testing::StatusIs;

class ResidencyTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, size_t bytes) {
    ASSERT_THAT(WriteFileAtomic(dir_.Path(name), std::string(bytes, 'x'), 0644), IsOk());
  }
  // So many of one byte, which nobody syncs.
  void WriteMany(int count) {
    for (int i = 0; i < count; ++i)
      std::ofstream(dir_.Path(absl::StrCat(i))) << 'x';
  }
  Residency Measure(const ResidencyOptions& options) {
    absl::StatusOr<Residency> residency = MeasureResidency({dir_.path()}, options, clock_);
    EXPECT_THAT(residency, IsOk());
    return residency.ok() ? *std::move(residency) : Residency{};
  }

  const testing::TempDir dir_;
  testing::FakeClock clock_;
};

TEST_F(ResidencyTest, CountsThePagesThatAreInMemory) {
  Write("large", 1 << 20);
  Write("small", 1);
  Write("empty", 0);

  const Residency residency = Measure({});

  EXPECT_EQ(residency.file_count, 3);
  EXPECT_EQ(residency.checked_files, 3);
  EXPECT_EQ(residency.checked_bytes, (1 << 20) + 1);
  EXPECT_EQ(residency.EstimatedBytes(), residency.checked_bytes);
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  EXPECT_EQ(residency.pages.resident, (1 << 20) / page_bytes + 1);
  ASSERT_EQ(residency.resident.size(), 2U);
  EXPECT_EQ(residency.resident[0].path, dir_.Path("large"));
  EXPECT_FALSE(residency.is_sample());
  EXPECT_EQ(Confidence(residency), "");
}

TEST_F(ResidencyTest, WhatIsNotWrittenYetIsTold) {
  const UniqueFd file(open(dir_.Path("new").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_THAT(WriteAll(file.get(), std::string(1 << 20, 'x')), IsOk());
  EXPECT_GT(CountPages(file.get())->unwritten, 0);
  ASSERT_EQ(fsync(file.get()), 0);
  EXPECT_EQ(CountPages(file.get())->unwritten, 0);
}

TEST_F(ResidencyTest, BothCallsSayTheSameOfAFileOfOurs) {
  Write("a", 100'000);
  const absl::StatusOr<UniqueFd> file = OpenRegularFile(dir_.Path("a"));
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(CountPagesByMincore(file->get())->resident, CountPages(file->get())->resident);
  ASSERT_EQ(fsync(file->get()), 0);
  ASSERT_EQ(posix_fadvise(file->get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  EXPECT_EQ(CountPages(file->get())->resident, 0);
  EXPECT_EQ(CountPagesByMincore(file->get())->resident, 0);
}

// As units do by SystemCallFilter, where systemd is older than the call.
TEST_F(ResidencyTest, WhereAFilterForbidsTheNewCallTheOldOneIsAsked) {
  Write("a", 100'000);
  const absl::StatusOr<UniqueFd> file = OpenRegularFile(dir_.Path("a"));
  ASSERT_THAT(file, IsOk());
  const int64_t resident = CountPages(file->get())->resident;
  ASSERT_GT(resident, 0);
  const pid_t child = fork();
  if (child == 0) {
    constexpr uint32_t kCachestat = 451;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCachestat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {std::size(filter), filter};
    const bool is_filtered = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                             prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    const absl::StatusOr<PageCounts> pages = CountPages(file->get());
    _exit(is_filtered && pages.ok() && pages->resident == resident ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Of somebody else's file mincore says that all pages are resident, whatever is true.
TEST_F(ResidencyTest, OfSomebodyElsesFileNothingIsClaimed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another";
  Write("a", 100'000);
  const absl::StatusOr<UniqueFd> file = OpenRegularFile(dir_.Path("a"));
  ASSERT_THAT(file, IsOk());
  const pid_t child = fork();
  if (child == 0) {
    const bool is_nobody = setgroups(0, nullptr) == 0 && setgid(65534) == 0 && setuid(65534) == 0;
    const bool is_refused = absl::IsPermissionDenied(CountPages(file->get()).status()) &&
                            absl::IsPermissionDenied(CountPagesByMincore(file->get()).status());
    _exit(is_nobody && is_refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ResidencyTest, OfVeryManyFilesASampleIsLookedAt) {
  WriteMany(3'000);
  int calls = 0;
  ResidencyOptions options{.seed = 20'241'123, .all_max = 1'000, .sample_count = 500};
  options.count = [&calls](int) -> absl::StatusOr<PageCounts> {
    ++calls;
    return PageCounts{};
  };

  const Residency residency = Measure(options);

  std::cout << "seed " << residency.seed << "\n";
  EXPECT_EQ(calls, 500);
  EXPECT_EQ(residency.file_count, 3'000);
  EXPECT_EQ(residency.checked_files, 500);
  EXPECT_EQ(residency.EstimatedBytes(), 3'000);
  EXPECT_THAT(Confidence(residency),
              AllOf(HasSubstr("500 of 3000 files"), HasSubstr("seed 20241123"),
                    HasSubstr("60.6 %")));  // 0.999 to the power of 500
}

TEST_F(ResidencyTest, ASeedDrawsTheSameFilesAndAnotherOthers) {
  WriteMany(200);
  const auto drawn = [this](uint64_t seed) {
    ResidencyOptions options{.seed = seed, .all_max = 0, .sample_count = 10};
    options.count = [](int) -> absl::StatusOr<PageCounts> { return PageCounts{1, 0}; };
    std::set<std::string> paths;
    for (const ResidentFile& file : Measure(options).resident)
      paths.insert(file.path);
    return paths;
  };
  EXPECT_EQ(drawn(1).size(), 10U) << "none twice";
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST_F(ResidencyTest, WhenTheTimeIsUpWhatWasSeenIsTheSample) {
  for (int i = 0; i < 100; ++i)
    Write(absl::StrCat(i), 1);
  ResidencyOptions options{.budget = absl::Seconds(2)};
  options.count = [this](int) -> absl::StatusOr<PageCounts> {
    clock_.Advance(absl::Milliseconds(100));
    return PageCounts{};
  };
  const Residency residency = Measure(options);
  EXPECT_EQ(residency.checked_files, 20);
  EXPECT_THAT(Confidence(residency), HasSubstr("20 of 100 files"));
}

TEST_F(ResidencyTest, FilesOfWhichTheKernelTellsNothingAreCounted) {
  Write("a", 1);
  ResidencyOptions options;
  options.count = [](int) { return absl::PermissionDeniedError("not yours"); };
  const Residency residency = Measure(options);
  EXPECT_EQ(residency.checked_files, 0);
  EXPECT_EQ(residency.untold_files, 1);
  EXPECT_EQ(residency.untold, "not yours");
  EXPECT_FALSE(residency.is_sample());
}

TEST_F(ResidencyTest, AMissingFolderIsNamed) {
  EXPECT_THAT(MeasureResidency({"/no/such/folder"}, {}, clock_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/folder")));
}

}  // namespace
}  // namespace assay::agent
