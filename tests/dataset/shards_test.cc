#include "common/dataset/shards.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/manifest.h"
#include "common/dataset/pack.h"
#include "common/dataset/verify.h"
#include "common/file.h"
#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::dataset {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Five samples to train on, four to validate with, and a file beside them.
class ShardsTest : public ::testing::Test {
 protected:
  ShardsTest() {
    for (const char* split : {"train", "validation"})
      EXPECT_THAT(MakeDirectories(dir_.Path(split)), IsOk());
    Add("stats");
    for (const char* name : {"train/a", "train/b", "train/c", "train/d", "train/e"})
      Add(name);
    for (const char* name : {"validation/a", "validation/b", "validation/c", "validation/d"})
      Add(name);
    manifest_.train_samples = 5;
    manifest_.validation_samples = 4;
    EXPECT_THAT(SaveManifest(dir_.path(), manifest_), IsOk());
  }

  void Add(const std::string& name) {
    const std::string content = absl::StrCat("what is in ", name);
    WriteFile(dir_.Path(name), content);
    manifest_.files.push_back(
        {.path = name, .bytes = std::ssize(content), .sha256 = Sha256Hex(content)});
  }

  std::string digest() const { return DatasetDigest(manifest_); }

  const TempDir dir_;
  const TempDir target_;
  Manifest manifest_ = {.name = "small", .benchmark = "plain", .generator = "imported"};
};

TEST_F(ShardsTest, TheIndexSaysWhatThePackedArchivesHold) {
  ASSERT_THAT(PackDataset(dir_.path(), target_.path(), {.shard_bytes = 60}), IsOk());

  const absl::StatusOr<std::vector<Shard>> index = LoadShardIndex(target_.path(), digest());

  ASSERT_THAT(index, IsOkAndHolds(SizeIs(4)));
  EXPECT_EQ(index->front().name, "00000.tar");
  EXPECT_THAT(index->front().files, ElementsAre("stats", "train/a", "train/b"));
  EXPECT_THAT(ReadShards(target_.path(), manifest_, 2), IsOkAndHolds(*index));
  EXPECT_THAT(VerifyDataset(target_.path(), 2), IsOkAndHolds(IsEmpty()));
}

// Ranks 0 and 2 of four, or rank 0 of two, need no archive of the others.
TEST_F(ShardsTest, SamplesOfAPartLieTogether) {
  ASSERT_THAT(PackDataset(dir_.path(), target_.path(), {.parts = 2}), IsOk());

  const absl::StatusOr<std::vector<Shard>> index = LoadShardIndex(target_.path(), digest());

  ASSERT_THAT(index, IsOkAndHolds(SizeIs(5)));
  EXPECT_THAT((*index)[0].files, ElementsAre("stats"));
  EXPECT_THAT((*index)[1].files, ElementsAre("train/a", "train/c", "train/e"));
  EXPECT_THAT((*index)[2].files, ElementsAre("train/b", "train/d"));
  EXPECT_THAT((*index)[3].files, ElementsAre("validation/a", "validation/c"));
  EXPECT_THAT((*index)[4].files, ElementsAre("validation/b", "validation/d"));
}

TEST_F(ShardsTest, AnIndexThatCannotBeTrueIsRefusedWithTheRemedy) {
  ASSERT_THAT(PackDataset(dir_.path(), target_.path(), {}), IsOk());
  const std::string path = target_.Path("shards.json");
  const std::string good = ReadFile(path).value_or("");
  const std::string head = good.substr(0, good.find("\"shards\""));
  for (const std::string& bad :
       {std::string("{"), std::string("[]"), std::string("{\"format\": 7}"),
        good.substr(0, good.size() / 2), head + "\"shards\": {}}", head + "\"shards\": [7]}",
        head + R"("shards": [{"name": "../x.tar", "files": []}]})",
        head + R"("shards": [{"name": "x.tar", "files": [7]}]})",
        head + R"("shards": [{"name": 7, "files": []}]})"}) {
    WriteFile(path, bad);
    EXPECT_THAT(LoadShardIndex(target_.path(), digest()),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(path), HasSubstr("assay dataset index"))))
        << bad;
  }
  WriteFile(path, good);
  EXPECT_THAT(LoadShardIndex(target_.path(), std::string(64, '0')),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("another dataset")));
  ASSERT_THAT(RemoveTree(path), IsOk());
  EXPECT_THAT(LoadShardIndex(target_.path(), digest()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("assay dataset index")));
}

TEST_F(ShardsTest, DamageAndWhatIsMissingIsToldByVerification) {
  ASSERT_THAT(PackDataset(dir_.path(), target_.path(), {.shard_bytes = 60}), IsOk());
  const auto problem = [&] {
    const absl::StatusOr<std::vector<Problem>> problems = VerifyDataset(target_.path(), 2);
    EXPECT_THAT(problems, IsOkAndHolds(SizeIs(1)));
    return problems.ok() && !problems->empty() ? problems->front() : Problem();
  };
  const std::string path = target_.Path("shards/00001.tar");
  const std::string good = ReadFile(path).value_or("");
  std::string damaged = good;
  damaged[damaged.find("what is in train/c")] = 'W';
  WriteFile(path, damaged);
  EXPECT_THAT(problem().problem, AllOf(HasSubstr("00001.tar"), HasSubstr("train/c")));
  ASSERT_THAT(RemoveTree(path), IsOk());
  EXPECT_THAT(problem().problem, HasSubstr("is in none of the archives"));
  WriteFile(target_.Path("shards/renamed.tar"), good);
  EXPECT_EQ(problem().file, "shards.json") << "the archives are whole, the index is not theirs";
}

TEST_F(ShardsTest, SamplesAreListedByTheManifest) {
  EXPECT_THAT(ListSamplesOf(manifest_, Split::kTrain, 2, ""),
              IsOkAndHolds(ElementsAre("train/a", "train/b")));
  EXPECT_THAT(ListSamplesOf(manifest_, Split::kValidation, 1, "d"),
              IsOkAndHolds(ElementsAre("validation/d")));
  EXPECT_THAT(ListSamplesOf(manifest_, Split::kValidation, 5, ""),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("4 samples")));
}

}  // namespace
}  // namespace assay::dataset
