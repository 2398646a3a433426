#include "common/dataset/verify.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/dataset/cosmo_dataset.h"
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
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A small good dataset, and ways to damage it.
class VerifyTest : public ::testing::TestWithParam<Compression> {
 protected:
  VerifyTest() {
    const CosmoDatasetSpec spec = {.parameters = {.mode = CosmoMode::kBeacon},
                                   .compression = GetParam(),
                                   .train_samples = 3,
                                   .validation_samples = 1};
    manifest_ = GenerateCosmoDataset(dir_.path(), spec, 2).value();
  }

  std::string Path() const { return dir_.Path(file_); }
  std::string Content() const { return ReadFile(Path()).value(); }
  void Replace(absl::string_view content) { WriteFile(Path(), content); }

  // Replaces the file by a sample, with good checksums everywhere, and lists it in the manifest.
  void ReplaceBySample(int edge, int16_t count, float target) {
    const std::vector<int16_t> counts(static_cast<size_t>(CosmoValues(edge)), count);
    std::string bytes = FrameRecord(EncodeCosmoSample(counts, {0, 0, 0, target}));
    if (GetParam() == Compression::kGzip) bytes = Gzip(bytes);
    Replace(bytes);
    ASSERT_THAT(RemoveTree(dir_.Path("manifest.json")), IsOk());
    for (ManifestFile& file : manifest_.files)
      if (file.path == file_)
        file = {file_, static_cast<int64_t>(bytes.size()), Sha256HexOfFile(Path()).value()};
    ASSERT_THAT(SaveManifest(dir_.path(), manifest_), IsOk());
  }

  // Expects exactly one problem, and returns it.
  Problem TheProblem() {
    const absl::StatusOr<std::vector<Problem>> problems = VerifyDataset(dir_.path(), 2);
    EXPECT_THAT(problems, IsOkAndHolds(SizeIs(1)));
    if (!problems.ok() || problems->size() != 1) return {};
    EXPECT_FALSE(problems->front().remedy.empty());
    return problems->front();
  }

  const TempDir dir_;
  const std::string file_ = CosmoFileName(Split::kTrain, 1);
  Manifest manifest_;
};

INSTANTIATE_TEST_SUITE_P(Compressions, VerifyTest,
                         ::testing::Values(Compression::kNone, Compression::kGzip),
                         [](const auto& test) { return std::string(CompressionName(test.param)); });

TEST_P(VerifyTest, AGoodDatasetHasNoProblems) {
  Progress last;

  EXPECT_THAT(VerifyDataset(dir_.path(), 2, [&](const Progress& progress) { last = progress; }),
              IsOkAndHolds(IsEmpty()));
  EXPECT_EQ(last.files, 4);
  EXPECT_EQ(last.bytes, TotalBytes(manifest_));
}

TEST_P(VerifyTest, DamageAtAnyOffsetIsFoundAndNamed) {
  const std::string good = Content();
  for (const double part : {0.0, 0.001, 0.1, 0.5, 0.9, 0.9999}) {
    std::string bad = good;
    const size_t at = static_cast<size_t>(part * static_cast<double>(good.size()));
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    Replace(bad);

    const Problem problem = TheProblem();
    EXPECT_EQ(problem.file, file_);
    EXPECT_TRUE(problem.offset.has_value()) << problem.problem;
  }
}

TEST_P(VerifyTest, TruncationIsFound) {
  Replace(Content().substr(0, Content().size() / 2));

  const Problem problem = TheProblem();
  EXPECT_EQ(problem.file, file_);
  EXPECT_THAT(problem.problem, HasSubstr("cut short"));
  EXPECT_THAT(problem.problem, HasSubstr("bytes instead of the manifest's"));
}

TEST_P(VerifyTest, MissingAndExtraFilesAreFound) {
  ASSERT_THAT(RemoveTree(Path()), IsOk());
  EXPECT_EQ(TheProblem().problem, "missing");

  WriteFile(dir_.Path("validation/other.tfrecord"), "");
  const absl::StatusOr<std::vector<Problem>> problems = VerifyDataset(dir_.path(), 1);
  ASSERT_THAT(problems, IsOkAndHolds(SizeIs(2)));
  EXPECT_EQ((*problems)[1].file, "validation/other.tfrecord");
  EXPECT_EQ((*problems)[1].problem, "not in the manifest");
}

TEST_P(VerifyTest, AMissingFolderIsAListOfMissingFiles) {
  ASSERT_THAT(RemoveTree(dir_.Path("train")), IsOk());

  EXPECT_THAT(VerifyDataset(dir_.path(), 2), IsOkAndHolds(SizeIs(3)));
}

TEST_P(VerifyTest, AnotherValidSampleIsFound) {
  Replace(ReadFile(dir_.Path(CosmoFileName(Split::kTrain, 2))).value());

  EXPECT_EQ(TheProblem().file, file_);
}

// The manifest's hash may itself be of a bad file; the content is checked all the same.
TEST_P(VerifyTest, BadSamplesAreFoundEvenIfTheManifestListsThem) {
  ReplaceBySample(16, 1, 0);
  EXPECT_THAT(TheProblem().problem, HasSubstr("a cube of edge 32 has 262144"));

  ReplaceBySample(32, -1, 0);
  EXPECT_THAT(TheProblem().problem, HasSubstr("negative"));

  ReplaceBySample(32, 1, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(TheProblem().problem, HasSubstr("target 3 is not finite"));
}

TEST_P(VerifyTest, WithoutAManifestThereIsNothingToCompareWith) {
  ASSERT_THAT(RemoveTree(dir_.Path("manifest.json")), IsOk());

  EXPECT_THAT(VerifyDataset(dir_.path(), 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("manifest.json")));
}

}  // namespace
}  // namespace assay::dataset
