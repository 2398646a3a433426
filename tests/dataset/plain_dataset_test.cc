#include "common/dataset/plain_dataset.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/verify.h"
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
using ::testing::IsEmpty;

class PlainDatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* split : {"train", "validation"})
      ASSERT_THAT(MakeDirectories(dir_.Path(split)), IsOk());
    WriteFile(dir_.Path("train/a.img"), "first");
    WriteFile(dir_.Path("train/b.img"), "second");
    WriteFile(dir_.Path("validation/c.img"), "third");
    WriteFile(dir_.Path("taxonomy.json"), "{}");
  }
  absl::StatusOr<Manifest> Import(const PlainImport& import) {
    return ImportPlainDataset(dir_.path(), import, 2);
  }
  std::vector<std::string> Problems() {
    std::vector<std::string> texts;
    const auto problems = VerifyDataset(dir_.path(), 2);
    EXPECT_THAT(problems, IsOk());
    for (const Problem& problem : *problems)
      texts.push_back(problem.file + ": " + problem.problem);
    return texts;
  }

  const TempDir dir_;
};

TEST_F(PlainDatasetTest, DescribesEveryFileAndFindsWhatIsChangedLater) {
  const auto imported = Import({.name = "mine", .benchmark = "shapes"});

  ASSERT_THAT(imported, IsOk());
  const auto manifest = LoadManifest(dir_.path());
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(*manifest, *imported);
  EXPECT_EQ(manifest->benchmark, "shapes");
  EXPECT_EQ(manifest->train_samples, 2);
  EXPECT_EQ(manifest->validation_samples, 1);
  ASSERT_EQ(manifest->files.size(), 4u);
  EXPECT_EQ(manifest->files[0].path, "taxonomy.json");
  EXPECT_EQ(manifest->files[2].sha256, Sha256Hex("second"));
  EXPECT_THAT(Problems(), IsEmpty());

  WriteFile(dir_.Path("train/a.img"), "fIrst");
  WriteFile(dir_.Path("train/b.img"), "sec");
  WriteFile(dir_.Path("train/d.img"), "more");
  ASSERT_THAT(RemoveTree(dir_.Path("validation/c.img")), IsOk());
  EXPECT_THAT(Problems(),
              ElementsAre("train/a.img: its SHA-256 is not the manifest's",
                          "train/b.img: 3 bytes instead of the manifest's 6",
                          "train/d.img: not in the manifest", "validation/c.img: missing"));
}

TEST_F(PlainDatasetTest, AFileMayHoldManySamples) {
  const auto imported = Import({.name = "mine",
                                .benchmark = "words",
                                .train_samples = 1'000'000,
                                .validation_samples = 65'536});

  ASSERT_THAT(imported, IsOk());
  const auto manifest = LoadManifest(dir_.path());
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->train_samples, 1'000'000);
  EXPECT_EQ(manifest->validation_samples, 65'536);
  EXPECT_THAT(Problems(), IsEmpty());
}

TEST_F(PlainDatasetTest, RefusesWhatIsNoSuchDataset) {
  EXPECT_THAT(Import({.benchmark = "cosmoflow"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dataset generate")));
  EXPECT_THAT(Import({.benchmark = "words", .train_samples = 7}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("both splits")));
  ASSERT_THAT(MakeDirectories(dir_.Path("train/deeper")), IsOk());
  EXPECT_THAT(Import({.benchmark = "words"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("deeper is no file")));
  ASSERT_THAT(RemoveTree(dir_.Path("train")), IsOk());
  ASSERT_THAT(MakeDirectories(dir_.Path("train")), IsOk());
  EXPECT_THAT(Import({.benchmark = "words"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("holds no files")));
  WriteFile(dir_.Path("train/a"), "a");
  ASSERT_THAT(Import({.benchmark = "words"}), IsOk());
  EXPECT_THAT(Import({.benchmark = "words"}), StatusIs(absl::StatusCode::kAlreadyExists));
}

}  // namespace
}  // namespace assay::dataset
