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
