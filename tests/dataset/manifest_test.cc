#include "common/dataset/manifest.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/sha256.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::dataset {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::testing::HasSubstr;

Manifest MakeManifest() {
  return {.name = "a \"name\"",
          .benchmark = "cosmoflow",
          .generator = "cosmosyn-1",
          .parameters = {{"mode", "beacon"}, {"seed", "18446744073709551615"}},
          .cube_edge = 32,
          .compression = Compression::kGzip,
          .train_samples = 1,
          .validation_samples = 1,
          .files = {{"train/a.tfrecord", 10, Sha256Hex("a")},
                    {"validation/b.tfrecord", 20, Sha256Hex("b")}}};
}

TEST(ManifestTest, SurvivesARoundTripThroughTheDisk) {
  const TempDir dir;

  ASSERT_THAT(SaveManifest(dir.path(), MakeManifest()), IsOk());

  EXPECT_THAT(LoadManifest(dir.path()), IsOkAndHolds(MakeManifest()));
  EXPECT_EQ(TotalBytes(MakeManifest()), 30);
}

TEST(ManifestTest, AManifestWithoutFilesSurvivesToo) {
  Manifest empty = MakeManifest();
  empty.files.clear();
  empty.parameters.clear();

  EXPECT_THAT(ParseManifest(PrintManifest(empty)), IsOkAndHolds(empty));
}

// The digest can be recomputed with a shell: print the lines and pipe them to sha256sum.
TEST(ManifestTest, DigestIsTheHashOfTheListing) {
  EXPECT_EQ(DatasetDigest(MakeManifest()),
            Sha256Hex(Sha256Hex("a") + " 10 train/a.tfrecord\n" + Sha256Hex("b") +
                      " 20 validation/b.tfrecord\n"));
}

TEST(ManifestTest, RefusesWhatWasEdited) {
  struct Case {
    const char* from;
    const char* to;
    const char* message;
  };
  const Case cases[] = {
      {"\"bytes\": 10", "\"bytes\": 11", "digest"},
      {"\"bytes\": 10", "\"bytes\": -1", "\"bytes\" is not a count"},
      {"train/a", "../train/a", "leaves the dataset's directory"},
      {"train/a", "/train/a", "leaves the dataset's directory"},
      {"train/a", "validation/c", "not in order"},
      {"\"compression\": \"gzip\"", "\"compression\": \"zip\"", "neither"},
      {"\"cube_edge\": 32", "\"cube_edge\": \"32\"", "cube_edge"},
      // 2^32 + 32 is 32 in an int, and 2^62 samples of 4 bytes are none.
      {"\"cube_edge\": 32", "\"cube_edge\": 4294967328",
       "\"cube_edge\" is not a count from 0 to 4096"},
      {"\"train_samples\": 1", "\"train_samples\": 4611686018427387904", "from 0 to 2147483647"},
      {"\"train_samples\": 1", "\"train_samples\": 2", "2, but 1 files are listed"},
      {"\"validation_samples\": 1", "\"validation_samples\": 0", "0, but 1 files are listed"},
      {"\"bytes\": 20", "\"bytes\": 9223372036854775807", "\"bytes\" is not a count"},
      {"assay-dataset-1", "assay-dataset-9", "format"},
      {"\"seed\": ", "\"seed\": 1, \"x\": ", "seed"},
      {"{", "", "not a JSON object"},
  };

  for (const Case& c : cases) {
    std::string text = PrintManifest(MakeManifest());
    text.replace(text.find(c.from), std::string(c.from).size(), c.to);
    EXPECT_THAT(ParseManifest(text), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(c.message)))
        << text;
  }
}

TEST(ManifestTest, AbsentManifestIsNotFound) {
  const TempDir dir;

  EXPECT_THAT(LoadManifest(dir.path()), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace assay::dataset
