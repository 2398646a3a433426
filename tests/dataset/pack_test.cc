#include "common/dataset/pack.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/manifest.h"
#include "common/file.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::dataset {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PackTest : public ::testing::Test {
 protected:
  PackTest() {
    EXPECT_THAT(MakeDirectories(dir_.Path("train")), IsOk());
    Manifest manifest = {.name = "small", .benchmark = "plain", .generator = "imported"};
    for (const int bytes : {400, 500, 2000, 100, 100}) {
      const std::string path = absl::StrCat("train/", manifest.files.size());
      const std::string content(static_cast<size_t>(bytes), 'x');
      WriteFile(dir_.Path(path), content);
      manifest.files.push_back({.path = path, .bytes = bytes, .sha256 = Sha256Hex(content)});
    }
    manifest.train_samples = 5;
    EXPECT_THAT(SaveManifest(dir_.path(), manifest), IsOk());
  }

  const TempDir dir_;
  const TempDir target_;
};

TEST_F(PackTest, ShardsHoldNeighboursUpToTheirSizeAndAreTheSameEachTime) {
  const PackOptions options = {.codec = ShardCodec::kZstd, .shard_bytes = 1000, .threads = 2};

  const absl::StatusOr<Packed> packed = PackDataset(dir_.path(), target_.Path("a"), options);

  ASSERT_THAT(packed, IsOk());
  EXPECT_EQ(packed->shards, 3);
  EXPECT_EQ(packed->bytes_before, 3100);
  EXPECT_LT(packed->bytes_after, 3100);
  EXPECT_THAT(ListDirectory(target_.Path("a/shards")).value(),
              ElementsAre("00000.tar.zst", "00001.tar.zst", "00002.tar.zst"));
  EXPECT_EQ(DatasetDigest(LoadManifest(target_.Path("a")).value()),
            DatasetDigest(LoadManifest(dir_.path()).value()));
  ASSERT_THAT(PackDataset(dir_.path(), target_.Path("b"), options), IsOk());
  EXPECT_EQ(ReadFile(target_.Path("a/shards/00000.tar.zst")).value(),
            ReadFile(target_.Path("b/shards/00000.tar.zst")).value());
}

TEST_F(PackTest, NothingIsWrittenBesideOtherShards) {
  ASSERT_THAT(PackDataset(dir_.path(), target_.path(), {}), IsOk());

  EXPECT_THAT(PackDataset(dir_.path(), target_.path(), {}),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("not empty")));
}

TEST_F(PackTest, WhatTheManifestDoesNotSayIsNotPacked) {
  WriteFile(dir_.Path("train/2"), "other bytes");

  EXPECT_THAT(PackDataset(dir_.path(), target_.path(), {}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("train/2")));

  EXPECT_FALSE(FileExists(target_.Path("manifest.json"))) << "it would call the shards complete";
}

}  // namespace
}  // namespace assay::dataset
