// Synthetic DeepCAM data: what is in a snapshot, what lands on disk, what verification finds.

#include "common/dataset/climate_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

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
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ClimateDatasetSpec Spec() {
  return {
      .parameters = {.seed = 4, .extents = {32, 48}}, .train_samples = 6, .validation_samples = 2};
}

ClimateSample SampleOf(const ClimateExtents& extents, uint32_t index, Split split = Split::kTrain) {
  auto synthesizer = ClimateSynthesizer::Create({.seed = 1, .extents = extents});
  EXPECT_THAT(synthesizer, IsOk());
  return (*synthesizer)->Generate(split, index);
}

TEST(ClimateSynthTest, ASnapshotIsAFunctionOfItsIndex) {
  const ClimateSample first = SampleOf({32, 48}, 3), again = SampleOf({32, 48}, 3);

  EXPECT_EQ(first.data, again.data);
  EXPECT_EQ(first.labels, again.labels);
  EXPECT_NE(first.data, SampleOf({32, 48}, 4).data);
  EXPECT_NE(first.data, SampleOf({32, 48}, 3, Split::kValidation).data);
}

// The real data has 98.6 % background, 0.05 % cyclones, 1.3 % rivers; ours has more of both, and
// every channel lies where the atmosphere's does.
TEST(ClimateSynthTest, LooksLikeWeather) {
  std::array<int64_t, kClimateClasses> pixels = {};
  ClimateStatistics::Channels low, high;
  low.fill(1e9F), high.fill(-1e9F);
  for (uint32_t index = 0; index < 8; ++index) {
    const ClimateSample sample = SampleOf({96, 144}, index);
    for (const uint8_t label : sample.labels)
      ++pixels[label];
    for (size_t i = 0; i < sample.data.size(); ++i) {
      low[i % 16] = std::min(low[i % 16], sample.data[i]);
      high[i % 16] = std::max(high[i % 16], sample.data[i]);
    }
    for (size_t i = 0; i < sample.labels.size(); ++i)
      ASSERT_TRUE(sample.labels[i] == 0 || sample.relaxed_labels[i] != 0) << "pixel " << i;
  }
  const double total = 8 * 96 * 144;

  EXPECT_NEAR(static_cast<double>(pixels[0]) / total, 0.95, 0.015);
  EXPECT_NEAR(static_cast<double>(pixels[1]) / total, 0.009, 0.005);
  EXPECT_NEAR(static_cast<double>(pixels[2]) / total, 0.041, 0.015);
  const std::array<std::pair<float, float>, 16> limits = {{{0, 120},
                                                           {-110, 110},
                                                           {-110, 110},
                                                           {-90, 90},
                                                           {-90, 90},
                                                           {0, 0.15F},
                                                           {45000, 110000},
                                                           {85000, 112000},
                                                           {180, 250},
                                                           {200, 290},
                                                           {-1e-6F, 4e-5F},
                                                           {220, 355},
                                                           {220, 350},
                                                           {-1500, 1500},
                                                           {9900, 13000},
                                                           {20, 75}}};
  for (size_t c = 0; c < 16; ++c) {
    EXPECT_GE(low[c], limits[c].first) << kClimateChannelNames[c];
    EXPECT_LE(high[c], limits[c].second) << kClimateChannelNames[c];
    EXPECT_LT(low[c], high[c]) << kClimateChannelNames[c];
  }
}

TEST(ClimateSynthTest, RefusesMapsThatTheModelCannotTake) {
  for (const ClimateExtents extents : {ClimateExtents{100, 144}, {96, 16}, {784, 1152}})
    EXPECT_THAT(ClimateSynthesizer::Create({.extents = extents}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("multiples of 16")));
}

TEST(ClimateFileTest, KeepsSamplesAndStatistics) {
  const ClimateSample sample = SampleOf({32, 48}, 0);
  const auto bytes = EncodeClimateSample(sample);
  ASSERT_THAT(bytes, IsOk());
  std::vector<float> data(sample.data.size());
  std::vector<uint8_t> labels(sample.labels.size());

  ASSERT_THAT(ParseClimateSample(*bytes, {32, 48}, {data, labels}), IsOk());

  EXPECT_EQ(data, sample.data);
  EXPECT_EQ(labels, sample.labels);
  EXPECT_EQ(*EncodeClimateSample(sample), *bytes);
  ASSERT_THAT(ClimateExtentsOf(*bytes), IsOk());
  EXPECT_EQ(*ClimateExtentsOf(*bytes), (ClimateExtents{32, 48}));

  ClimateStatistics statistics = {.count = 7};
  statistics.max.fill(3), statistics.min.fill(1), statistics.mean.fill(2);
  const auto encoded = EncodeClimateStatistics(statistics);
  ASSERT_THAT(encoded, IsOk());
  const auto parsed = ParseClimateStatistics(*encoded);
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(*parsed, statistics);
}

TEST(ClimateFileTest, SaysWhatIsWrongWithAFile) {
  const ClimateSample sample = SampleOf({32, 48}, 0);
  std::vector<float> data(sample.data.size());
  std::vector<uint8_t> labels(sample.labels.size());
  const auto parse = [&](absl::string_view bytes, const ClimateExtents& extents) {
    return ParseClimateSample(bytes, extents, {data, labels});
  };
  const std::string good = *EncodeClimateSample(sample);
  ClimateSample bad_label = sample, bad_number = sample;
  bad_label.labels[5] = 3;
  bad_number.data[16 * 9 + 2] = std::nanf("");

  EXPECT_THAT(parse("no HDF5", {32, 48}), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not")));
  EXPECT_THAT(parse(good.substr(0, good.size() / 2), {32, 48}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(parse(good, {48, 32}), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("[32, 48")));
  EXPECT_THAT(parse(*EncodeClimateSample(bad_label), {32, 48}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("label 3")));
  EXPECT_THAT(parse(*EncodeClimateSample(bad_number), {32, 48}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("V850")));
  EXPECT_THAT(ParseClimateStatistics(good), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ClimateFileTest, NormalisesByTheTrainingRange) {
  ClimateStatistics statistics;
  statistics.min.fill(10), statistics.max.fill(30);
  std::vector<float> data(32, 15);

  NormaliseClimate(statistics, data);

  EXPECT_THAT(data, ::testing::Each(0.25F));
}

TEST(ClimateDatasetTest, NamesSortByIndex) {
  EXPECT_EQ(ClimateFileName(Split::kTrain, 0), "train/data-1979-01-01-00-1.h5");
  EXPECT_EQ(ClimateFileName(Split::kValidation, 8 * 28 + 9), "validation/data-1979-02-02-01-2.h5");
  for (const uint32_t index : {0U, 7U, 8U, 223U, 2687U, 2688U, 100'000U})
    EXPECT_LT(ClimateFileName(Split::kTrain, index), ClimateFileName(Split::kTrain, index + 1));
}

TEST(ClimateDatasetTest, GeneratesTheSameBytesWithAnyThreadsAndVerifies) {
  const TempDir one, two;
  const auto manifest = GenerateClimateDataset(one.path(), Spec(), 1);
  const auto other = GenerateClimateDataset(two.path(), Spec(), 3);

  ASSERT_THAT(manifest, IsOk());
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(DatasetDigest(*manifest), DatasetDigest(*other));
  EXPECT_EQ(manifest->benchmark, "deepcam");
  EXPECT_THAT(manifest->files, SizeIs(9));
  const auto problems = VerifyDataset(one.path(), 2);
  ASSERT_THAT(problems, IsOk());
  EXPECT_THAT(*problems, IsEmpty());
}

// Oracle: the same sums, taken here over the files.
TEST(ClimateDatasetTest, StatisticsAreThoseOfTheTrainingFiles) {
  const TempDir dir;
  ASSERT_THAT(GenerateClimateDataset(dir.path(), Spec(), 2), IsOk());
  const auto statistics = ParseClimateStatistics(ReadFile(dir.Path("stats.h5")).value());
  ASSERT_THAT(statistics, IsOk());
  float highest = -1;
  double sum = 0;
  std::vector<float> data(32 * 48 * 16);
  std::vector<uint8_t> labels(32 * 48);
  for (uint32_t index = 0; index < 6; ++index) {
    const std::string path = dir.Path(ClimateFileName(Split::kTrain, index));
    ASSERT_THAT(ParseClimateSample(ReadFile(path).value(), {32, 48}, {data, labels}), IsOk());
    for (size_t i = 0; i < data.size(); i += 16)
      highest = std::max(highest, data[i]), sum += double{data[i]};
  }

  EXPECT_EQ(statistics->count, 6);
  EXPECT_EQ(statistics->max[0], highest);
  EXPECT_NEAR(statistics->mean[0], sum / (6 * 32 * 48), 1e-4);
}

TEST(ClimateDatasetTest, GoesOnWhereItStopped) {
  const TempDir dir;
  const auto first = GenerateClimateDataset(dir.path(), Spec(), 2);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(RemoveTree(dir.Path("stats.h5")), IsOk());
  WriteFile(dir.Path(ClimateFileName(Split::kTrain, 2)), "cut short");

  const auto again = GenerateClimateDataset(dir.path(), Spec(), 2);

  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, *first);
  EXPECT_THAT(*VerifyDataset(dir.path(), 1), IsEmpty());
  ClimateDatasetSpec other = Spec();
  other.parameters.seed = 5;
  EXPECT_THAT(GenerateClimateDataset(dir.path(), other, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ClimateDatasetTest, VerificationNamesDamagedMissingAndExtraFiles) {
  const TempDir dir;
  ASSERT_THAT(GenerateClimateDataset(dir.path(), Spec(), 2), IsOk());
  const std::string damaged = ClimateFileName(Split::kTrain, 1);
  std::string bytes = ReadFile(dir.Path(damaged)).value();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  WriteFile(dir.Path(damaged), bytes);
  ASSERT_THAT(RemoveTree(dir.Path(ClimateFileName(Split::kValidation, 0))), IsOk());
  WriteFile(dir.Path("train/extra.h5"), "?");

  const auto problems = VerifyDataset(dir.path(), 2);

  ASSERT_THAT(problems, IsOk());
  ASSERT_THAT(*problems, SizeIs(3));
  EXPECT_EQ((*problems)[0].file, damaged);
  EXPECT_EQ((*problems)[1].file, "train/extra.h5");
  EXPECT_EQ((*problems)[2].problem, "missing");
}

// Goal: damage is named, whatever the HDF5 library would make of it. Method: change a short file in
// many reproducible ways, some of which that library answers with a crash.
TEST(ClimateDatasetTest, VerificationSurvivesEveryDamage) {
  const TempDir dir;
  ASSERT_THAT(GenerateClimateDataset(dir.path(), Spec(), 2), IsOk());
  const std::string path = dir.Path(kClimateStatisticsName);
  const std::string good = ReadFile(path).value();
  for (size_t i = 0; i < good.size(); i += 16) {
    std::string bad = good;
    bad[i] = static_cast<char>(~bad[i]);
    WriteFile(path, bad);

    const auto problems = VerifyDataset(dir.path(), 1);

    ASSERT_THAT(problems, IsOk());
    ASSERT_THAT(*problems, SizeIs(1)) << "byte " << i;
    EXPECT_EQ((*problems)[0].file, kClimateStatisticsName);
  }
}

}  // namespace
}  // namespace assay::dataset
