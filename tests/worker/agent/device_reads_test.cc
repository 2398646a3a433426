#include "worker/agent/device_reads.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

constexpr int64_t kBytes = 1 << 20;

// As Linux 6.18 has it, shortened.
constexpr char kFormat[] = R"(name: block_rq_issue
ID: 2104
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:dev_t dev;	offset:8;	size:4;	signed:0;
	field:sector_t sector;	offset:16;	size:8;	signed:0;
	field:unsigned int nr_sector;	offset:24;	size:4;	signed:0;
	field:char rwbs[10];	offset:34;	size:10;	signed:0;
)";

TEST(DeviceReadsTest, FindsItsFieldsInTheKernelsText) {
  const absl::StatusOr<RequestFields> fields = ParseRequestFormat(kFormat);
  ASSERT_THAT(fields, IsOk());
  EXPECT_EQ(fields->device, 8);
  EXPECT_EQ(fields->sector, 16);
  EXPECT_EQ(fields->sector_count, 24);
  EXPECT_EQ(fields->kind, 34);
  EXPECT_EQ(fields->kind_bytes, 10);
  EXPECT_THAT(ParseRequestFormat(""), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(DeviceReadsTest, CountsWhatRangesHaveInCommon) {
  const std::vector<DeviceRange> ranges = {{1, 100, 200}, {1, 300, 400}, {2, 0, 50}};
  EXPECT_EQ(Common({1, 0, 100}, ranges), 0);
  EXPECT_EQ(Common({1, 150, 160}, ranges), 10);
  EXPECT_EQ(Common({1, 150, 350}, ranges), 100);
  EXPECT_EQ(Common({1, 0, 1000}, ranges), 200);
  EXPECT_EQ(Common({1, 400, 1000}, ranges), 0) << "those of the next device are none";
  EXPECT_EQ(Common({2, 40, 60}, ranges), 10);
  EXPECT_EQ(Common({3, 0, 1000}, ranges), 0);
}

TEST(DeviceReadsTest, SeesReadsPastThePageCacheOfItsFilesOnly) {
  const TempDir dir;
  for (const char* file : {"ours", "other"})
    ASSERT_THAT(WriteFileAtomic(dir.Path(file), std::string(kBytes, 'x')), IsOk());
  absl::StatusOr<std::vector<DeviceRange>> ranges =
      RangesOf({dir.Path("ours")}, absl::Seconds(10), RealClock());
  if (!ranges.ok()) GTEST_SKIP() << ranges.status();
  absl::StatusOr<DeviceReads> reads = DeviceReads::Watch(*std::move(ranges));
  if (!reads.ok()) GTEST_SKIP() << reads.status();
  const auto read = [&dir](const char* file) {
    const UniqueFd fd(open(dir.Path(file).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    void* buffer = nullptr;
    ASSERT_EQ(posix_memalign(&buffer, 4096, kBytes), 0);
    EXPECT_EQ(pread(fd.get(), buffer, kBytes, 0), kBytes);
    free(buffer);
  };

  read("other");
  reads->Take();
  EXPECT_EQ(reads->bytes(), 0);
  read("ours");
  reads->Take();
  EXPECT_GE(reads->bytes(), kBytes) << "a request that has to wait is noted once more";
  EXPECT_FALSE(reads->has_lost());
}

}  // namespace
}  // namespace assay::agent
