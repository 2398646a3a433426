#include "common/dataset/cosmo_dataset.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

CosmoDatasetSpec SmallSpec(Compression compression = Compression::kNone) {
  return {.name = "small",
          .parameters = {.mode = CosmoMode::kBeacon, .seed = 4},
          .compression = compression,
          .train_samples = 5,
          .validation_samples = 2};
}

TEST(CosmoDatasetTest, WritesTheRealLayout) {
  const TempDir dir;

  const absl::StatusOr<Manifest> manifest = GenerateCosmoDataset(dir.path(), SmallSpec(), 2);

  ASSERT_THAT(manifest, IsOk());
  EXPECT_THAT(ListDirectory(dir.path()),
              IsOkAndHolds(ElementsAre("manifest.json", "train", "validation")));
  EXPECT_THAT(ListSamples(dir.path(), Split::kTrain), IsOkAndHolds(SizeIs(5)));
  EXPECT_THAT(ListSamples(dir.path(), Split::kValidation, 2),
              IsOkAndHolds(ElementsAre("validation/cosmosyn_univ_v0000000000_000.tfrecord",
                                       "validation/cosmosyn_univ_v0000000001_000.tfrecord")));
  EXPECT_THAT(ListSamples(dir.path(), Split::kValidation, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("holds 2 samples")));
  EXPECT_EQ(TotalBytes(*manifest), 7 * 262210);
  EXPECT_THAT(LoadManifest(dir.path()), IsOkAndHolds(*manifest));
}

TEST(CosmoDatasetTest, FilesHoldTheGeneratedSamples) {
  for (const Compression compression : {Compression::kNone, Compression::kGzip}) {
    const TempDir dir;
    const CosmoDatasetSpec spec = SmallSpec(compression);
    ASSERT_THAT(GenerateCosmoDataset(dir.path(), spec, 2), IsOk());

    RecordFile file(compression);
    const absl::StatusOr<absl::string_view> payload =
        file.ReadOnly(dir.Path(CosmoFileName(Split::kTrain, 3)));
    ASSERT_THAT(payload, IsOk());

    const CosmoSample want =
        CosmoSynthesizer::Create(spec.parameters).value()->Generate(Split::kTrain, 3);
    EXPECT_EQ(*payload, EncodeCosmoSample(want.counts, want.targets));
  }
}

TEST(CosmoDatasetTest, ThreadsDoNotShowInTheResult) {
  const TempDir one;
  const TempDir three;

  const absl::StatusOr<Manifest> a = GenerateCosmoDataset(one.path(), SmallSpec(), 1);
  const absl::StatusOr<Manifest> b = GenerateCosmoDataset(three.path(), SmallSpec(), 3);

  ASSERT_THAT(a, IsOk());
  EXPECT_THAT(b, IsOkAndHolds(*a));
}

TEST(CosmoDatasetTest, LeavesACompleteDatasetAlone) {
  const TempDir dir;
  const absl::StatusOr<Manifest> first = GenerateCosmoDataset(dir.path(), SmallSpec(), 1);
  ASSERT_THAT(first, IsOk());
  int reports = 0;

  EXPECT_THAT(GenerateCosmoDataset(dir.path(), SmallSpec(), 1, [&](const Progress&) { ++reports; }),
              IsOkAndHolds(*first));
  EXPECT_EQ(reports, 0);
}

// What a killed generation leaves: a note instead of the manifest, files missing, and, after a
// power failure, files without their content.
TEST(CosmoDatasetTest, ContinuesAnInterruptedGeneration) {
  const TempDir whole;
  const absl::StatusOr<Manifest> want = GenerateCosmoDataset(whole.path(), SmallSpec(), 1);
  ASSERT_THAT(want, IsOk());
  const TempDir dir;
  ASSERT_THAT(GenerateCosmoDataset(dir.path(), SmallSpec(), 1), IsOk());
  Manifest note = *want;
  note.files.clear();
  WriteFile(dir.Path("unfinished.json"), PrintManifest(note));
  ASSERT_THAT(RemoveTree(dir.Path("manifest.json")), IsOk());
  ASSERT_THAT(RemoveTree(dir.Path(CosmoFileName(Split::kTrain, 1))), IsOk());
  WriteFile(dir.Path(CosmoFileName(Split::kTrain, 2)), "");
  WriteFile(dir.Path(CosmoFileName(Split::kTrain, 4)) + ".tmp", "x");

  EXPECT_THAT(GenerateCosmoDataset(dir.path(), SmallSpec(), 2), IsOkAndHolds(*want));
  EXPECT_FALSE(FileExists(dir.Path("unfinished.json")));
}

TEST(CosmoDatasetTest, RestoresDeletedFiles) {
  const TempDir dir;
  const absl::StatusOr<Manifest> want = GenerateCosmoDataset(dir.path(), SmallSpec(), 1);
  ASSERT_THAT(want, IsOk());
  const std::string lost = dir.Path(CosmoFileName(Split::kTrain, 1));
  ASSERT_THAT(RemoveTree(lost), IsOk());

  EXPECT_THAT(GenerateCosmoDataset(dir.path(), SmallSpec(), 1), IsOkAndHolds(*want));
  EXPECT_TRUE(FileExists(lost));
}

TEST(CosmoDatasetTest, NeverMixesDatasets) {
  const TempDir dir;
  ASSERT_THAT(GenerateCosmoDataset(dir.path(), SmallSpec(), 1), IsOk());
  CosmoDatasetSpec other = SmallSpec();
  other.parameters.seed = 5;

  EXPECT_THAT(GenerateCosmoDataset(dir.path(), other, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another directory")));

  ASSERT_THAT(RemoveTree(dir.Path("manifest.json")), IsOk());
  EXPECT_THAT(GenerateCosmoDataset(dir.path(), other, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("unknown origin")));
}

TEST(CosmoDatasetTest, RefusesImpossibleSpecs) {
  const TempDir dir;
  CosmoDatasetSpec spec = SmallSpec();
  spec.train_samples = 0;
  EXPECT_THAT(GenerateCosmoDataset(dir.path(), spec, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("train_samples is 0")));

  spec = SmallSpec();
  spec.parameters.edge = 48;
  EXPECT_THAT(GenerateCosmoDataset(dir.path(), spec, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("48")));
  EXPECT_THAT(ListDirectory(dir.path()), IsOkAndHolds(SizeIs(0)));
}

TEST(CosmoDatasetTest, ImportsSamplesFromElsewhere) {
  const TempDir dir;
  const absl::StatusOr<Manifest> made =
      GenerateCosmoDataset(dir.path(), SmallSpec(Compression::kGzip), 1);
  ASSERT_THAT(made, IsOk());
  const ImportOptions options = {.name = "real", .cube_edge = 32};
  EXPECT_THAT(ImportCosmoDataset(dir.path(), options, 2),
              StatusIs(absl::StatusCode::kAlreadyExists));
  ASSERT_THAT(RemoveTree(dir.Path("manifest.json")), IsOk());

  const absl::StatusOr<Manifest> imported = ImportCosmoDataset(dir.path(), options, 2);

  ASSERT_THAT(imported, IsOk());
  EXPECT_EQ(imported->files, made->files);
  EXPECT_EQ(imported->generator, "imported");
  EXPECT_EQ(imported->train_samples, 5);
}

TEST(CosmoDatasetTest, RefusesToImportWhatIsNoSample) {
  const TempDir dir;
  ASSERT_THAT(GenerateCosmoDataset(dir.path(), SmallSpec(), 1), IsOk());
  ASSERT_THAT(RemoveTree(dir.Path("manifest.json")), IsOk());

  EXPECT_THAT(
      ImportCosmoDataset(dir.path(), {.cube_edge = 64, .compression = Compression::kNone}, 1),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("cosmosyn_univ_t0000000000")));
}

}  // namespace
}  // namespace assay::dataset
