#include "server/metrics/directory_figures.h"

#include <sys/statvfs.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/server/metrics/series.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::metrics {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::TextOf;
using ::assay::testing::ValueOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

TEST(DirectoryFiguresTest, SizesAreThoseOfTheFiles) {
  const assay::testing::TempDir dir;
  ASSERT_THAT(WriteFileAtomic(dir.Path("assay.db"), std::string(8192, 'x')), IsOk());
  const DirectoryFigures figures(dir.Path("assay.db"), 1000);

  EXPECT_THAT(ValueOf(TextOf(figures.Collect()), "assay_database_wal_size_bytes"), Optional(0));
  ASSERT_THAT(WriteFileAtomic(dir.Path("assay.db-wal"), std::string(4096, 'x')), IsOk());
  const std::string text = TextOf(figures.Collect());
  EXPECT_THAT(ValueOf(text, "assay_database_size_bytes"), Optional(8192));
  EXPECT_THAT(ValueOf(text, "assay_database_wal_size_bytes"), Optional(4096));
  EXPECT_THAT(ValueOf(text, "assay_data_directory_reserve_bytes"), Optional(1000));
  struct statvfs info = {};
  ASSERT_EQ(statvfs(dir.Path("assay.db").c_str(), &info), 0);
  EXPECT_THAT(ValueOf(text, "assay_data_directory_size_bytes"),
              Optional(static_cast<double>(info.f_blocks) * static_cast<double>(info.f_frsize)));
  EXPECT_GT(ValueOf(text, "assay_data_directory_free_bytes").value_or(0), 0);
}

TEST(DirectoryFiguresTest, WhatCannotBeAskedIsNotThere) {
  const DirectoryFigures figures("/nowhere/assay.db", 0);
  EXPECT_EQ(ValueOf(TextOf(figures.Collect()), "assay_data_directory_free_bytes"), std::nullopt);
}

}  // namespace
}  // namespace assay::metrics
