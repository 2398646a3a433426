#include "worker/cache/cache_journal.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::cache {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::assay::testing::WriteFile;
using ::testing::HasSubstr;

const std::string kDigest(64, 'a');

TEST(CacheJournalTest, ReadsWhatIsWritten) {
  const Journal head = {.name = "cosmo 32", .bytes_total = 30, .files_total = 3};
  const JournalFile file = {.mtime_ns = -5, .bytes = 20, .sha256 = kDigest};
  const std::string text = HeadLine(head) + FinishedLine("train/a b", file) +
                           FinishedLine("- c", file) + FinishedLine("gone", file) +
                           GoneLine("gone");

  const absl::StatusOr<Journal> journal = ParseJournal(text);

  ASSERT_THAT(journal, IsOk());
  EXPECT_EQ(journal->name, "cosmo 32");
  EXPECT_EQ(journal->bytes_total, 30);
  EXPECT_EQ(journal->files_total, 3);
  EXPECT_EQ(journal->files.size(), 2U);
  EXPECT_EQ(journal->files.at("train/a b"), file);
  EXPECT_EQ(journal->files.at("- c"), file);
  EXPECT_EQ(journal->Bytes(), 40);
}

// A crash may cut the last line anywhere: then its file is not finished, and the next line counts.
TEST(CacheJournalTest, ALineThatWasCutIsNoLine) {
  const JournalFile file = {.mtime_ns = 1, .bytes = 2, .sha256 = kDigest};
  const std::string head = HeadLine({.name = "n", .bytes_total = 2, .files_total = 1});
  const std::string line = FinishedLine("train/1", file);
  const TempDir dir;
  const std::string path = dir.Path("journal");
  for (size_t cut = 0; cut < line.size(); ++cut) {
    WriteFile(path, head + line.substr(0, cut));
    ASSERT_THAT(LoadJournal(path), IsOk());
    EXPECT_TRUE(LoadJournal(path)->files.empty()) << cut;

    ASSERT_THAT(CutJournal(path), IsOk());
    ASSERT_THAT(AppendToJournal(path, line), IsOk());

    EXPECT_EQ(LoadJournal(path)->files.size(), 1U) << cut;
  }
}

TEST(CacheJournalTest, WhatIsNoJournalIsRefusedWithItsLine) {
  const std::string head = HeadLine({.name = "n"});
  for (const std::string& line : {std::string("+ 1 2 short a\n"), "+ 1 x " + kDigest + " a\n",
                                  "* 1 2 " + kDigest + " a\n", std::string("\n")})
    EXPECT_THAT(ParseJournal(head + line),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("line 2")))
        << line;
  EXPECT_THAT(ParseJournal("another format\n"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("line 1")));
}

}  // namespace
}  // namespace assay::cache
