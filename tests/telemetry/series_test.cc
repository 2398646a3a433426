#include "common/telemetry/series.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;

class SeriesTest : public ::testing::Test {
 protected:
  static Header HeaderOf(size_t column_count) {
    Header header{.boot_id = "one boot", .wall_us = 1'704'067'200'000'000, .node_ns = 77};
    for (size_t c = 0; c < column_count; ++c)
      header.columns.push_back({"measure." + std::to_string(c), "bytes", c % 2 == 0});
    return header;
  }
  std::string Write(const Series& series) {
    absl::StatusOr<SeriesWriter> writer = SeriesWriter::Create(path_, series.header);
    EXPECT_THAT(writer, IsOk());
    for (size_t i = 0; i < series.at_ns.size(); ++i) {
      std::vector<int64_t> values;
      for (const std::vector<int64_t>& column : series.columns)
        values.push_back(column[i]);
      EXPECT_THAT(writer->Append(series.at_ns[i], values), IsOk());
    }
    EXPECT_THAT(writer->Flush(), IsOk());
    return *ReadFile(path_);
  }
  // A sample a second of numbers that grow, jump, and are missing.
  static Series Random(size_t sample_count, uint64_t seed) {
    std::mt19937_64 random(seed);
    Series series{.header = HeaderOf(5), .at_ns = {}, .columns = {}, .damage = {}};
    series.columns.resize(5);
    int64_t at_ns = 1'000'000'000;
    for (size_t i = 0; i < sample_count; ++i) {
      at_ns += 1'000'000'000 + static_cast<int64_t>(random() % 1'000'000);
      series.at_ns.push_back(at_ns);
      series.columns[0].push_back(static_cast<int64_t>(i * 4096));
      series.columns[1].push_back(static_cast<int64_t>(random()));
      series.columns[2].push_back(random() % 3 == 0 ? kMissing : 5);
      series.columns[3].push_back(i % 2 == 0 ? std::numeric_limits<int64_t>::max()
                                             : std::numeric_limits<int64_t>::min());
      series.columns[4].push_back(-static_cast<int64_t>(i));
    }
    return series;
  }

  testing::TempDir dir_;
  const std::string path_ = dir_.Path("telemetry.bin");
};

TEST_F(SeriesTest, IsReadAsItWasWritten) {
  for (const size_t count : {0, 1, 2, 127, 128, 129, 1000}) {
    const Series written = Random(count, count);
    const absl::StatusOr<Series> read = ReadSeries(Write(written));
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(read->header, written.header);
    EXPECT_EQ(read->at_ns, written.at_ns) << count;
    EXPECT_EQ(read->columns, written.columns) << count;
    EXPECT_THAT(read->damage, IsEmpty());
  }
}

TEST_F(SeriesTest, WhereItIsCutItIsReadUpToTheLastWholeBlock) {
  const Series written = Random(300, 1);
  const std::string bytes = Write(written);
  size_t most = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const absl::StatusOr<Series> read = ReadSeries(bytes.substr(0, size));
    if (!read.ok()) continue;
    EXPECT_EQ(read->at_ns.size() % kBlockSamples, 0U);
    EXPECT_GE(read->at_ns.size(), most);
    most = read->at_ns.size();
    for (size_t i = 0; i < most; ++i)
      ASSERT_EQ(read->columns[1][i], written.columns[1][i]);
  }
  EXPECT_EQ(most, 2 * kBlockSamples) << "the third block is whole with the last byte";
}

TEST_F(SeriesTest, AByteThatHasChangedIsFound) {
  const std::string bytes = Write(Random(300, 2));
  for (size_t at = 0; at < bytes.size(); at += 13) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    const absl::StatusOr<Series> read = ReadSeries(changed);
    EXPECT_TRUE(!read.ok() || !read->damage.empty()) << at;
  }
}

TEST_F(SeriesTest, OtherFilesAreNone) {
  EXPECT_THAT(ReadSeries(""), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no telemetry")));
  EXPECT_THAT(ReadSeries(":::MLLOG {}"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ReadSeries("ASSAYTM1"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends")));
}

TEST_F(SeriesTest, WhatHardlyChangesIsSmall) {
  Series quiet{.header = HeaderOf(60), .at_ns = {}, .columns = {}, .damage = {}};
  quiet.columns.resize(60);
  for (int64_t i = 0; i < 3600; ++i) {
    quiet.at_ns.push_back(i * 1'000'000'000);
    for (std::vector<int64_t>& column : quiet.columns)
      column.push_back(i * 100);
  }
  EXPECT_LT(Write(quiet).size(), 60U << 10) << "an hour of 60 measures";
}

TEST_F(SeriesTest, AReaderTakesOnlyWhatItAskedFor) {
  const Series series = Random(300, 7);
  const std::string bytes = Write(series);

  const absl::StatusOr<Series> some = ReadSeries(bytes, {.prefixes = {"measure.2", "measure.4"}});
  ASSERT_THAT(some, IsOk());
  EXPECT_EQ(some->at_ns, series.at_ns);
  ASSERT_EQ(some->header.columns.size(), 2U);
  EXPECT_EQ(some->header.columns[1].name, "measure.4");
  EXPECT_EQ(some->columns[1], series.columns[4]);

  const absl::StatusOr<Series> few =
      ReadSeries(bytes, {.prefixes = {"none"}, .value_count_max = 256});
  ASSERT_THAT(few, IsOk());
  EXPECT_EQ(few->at_ns.size(), 256U);
  EXPECT_THAT(few->damage, HasSubstr("more samples than are read"));
}

TEST_F(SeriesTest, WhatTheOperatorHasComparedStays) {
  Series series = Random(3, 7);
  series.header.comparisons = {{"rapl", "WT310 of 2026-03-01, 2.1 %"}};
  EXPECT_EQ(ReadSeries(Write(series))->header, series.header);
}

}  // namespace
}  // namespace assay::telemetry
