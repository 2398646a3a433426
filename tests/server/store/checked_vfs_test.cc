#include "server/store/checked_vfs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "server/store/sqlite.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

constexpr int64_t kFileBytesMax = 1 << 30;

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kCount[] = "SELECT COUNT(x) FROM a WHERE LENGTH(x) = 3000";

class CheckedVfsTest : public ::testing::Test {
 protected:
  Db Open() { return *Db::Open(path_, OpenMode::kReadWriteCreate); }

  // Rows of a page each.
  void Fill(Db* db, int row_count) {
    CHECK_OK(db->Exec("CREATE TABLE IF NOT EXISTS a (x BLOB) STRICT"));
    CHECK_OK(
        db->Exec(absl::StrCat("INSERT INTO a WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                              "SELECT i + 1 FROM n WHERE i < ",
                              row_count, ") SELECT randomblob(3000) FROM n")));
  }

  static void Flip(const std::string& path, int64_t offset) {
    const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    unsigned char byte = 0;
    CHECK(pread(fd.get(), &byte, 1, offset) == 1);
    byte ^= 0x10;
    CHECK(pwrite(fd.get(), &byte, 1, offset) == 1);
  }

  TempDir dir_;
  const std::string path_ = dir_.Path("a.db");
};

TEST_F(CheckedVfsTest, NamesADamagedPageOfTheDatabase) {
  {
    Db db = Open();
    Fill(&db, 20);
  }
  EXPECT_THAT(Open().QueryInt(kCount), IsOkAndHolds(20));

  Flip(path_, 10 * kPageBytes + 1000);

  EXPECT_THAT(Open().QueryInt("SELECT SUM(LENGTH(HEX(x))) FROM a"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a.db: page 11 ")));
}

TEST_F(CheckedVfsTest, NamesADamagedFrameOfTheLog) {
  Db db = Open();
  Fill(&db, 20);
  const int64_t frame = 5;

  Flip(path_ + "-wal", kWalHeaderBytes + (frame - 1) * kFrameBytes + kFrameHeaderBytes + 2000);

  Db reader = *Db::Open(path_, OpenMode::kReadOnly);
  EXPECT_THAT(reader.QueryInt("SELECT SUM(LENGTH(HEX(x))) FROM a"),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("a.db-wal"), HasSubstr("frame 5 with page"))));
  EXPECT_THAT(db.Checkpoint(), StatusIs(absl::StatusCode::kDataLoss)) << "it is not copied either";
}

TEST_F(CheckedVfsTest, NamesWhatIsCutOff) {
  {
    Db db = Open();
    Fill(&db, 20);
  }
  ASSERT_EQ(truncate(path_.c_str(), 12 * kPageBytes), 0);

  EXPECT_THAT(Db::Open(path_, OpenMode::kReadWriteCreate),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_)));
}

// A crash leaves a log, which the next connection recovers by SQLite's own checksums: they have to
// fit to what the pages have become. The copy is made while the first connection is open, so its
// log is as a crash would have left it.
TEST_F(CheckedVfsTest, LogsAreRecovered) {
  Db db = Open();
  for (int i = 0; i < 30; ++i)
    Fill(&db, 7);
  for (const char* suffix : {"", "-wal"})
    CHECK_OK(WriteFileAtomic(absl::StrCat(dir_.Path("b.db"), suffix),
                             *ReadFile(path_ + suffix, kFileBytesMax)));

  Db recovered = *Db::Open(dir_.Path("b.db"), OpenMode::kReadWriteCreate);

  EXPECT_THAT(recovered.QueryInt(kCount), IsOkAndHolds(210));
  Fill(&recovered, 3);  // goes on in the log that was recovered
  ASSERT_THAT(recovered.Checkpoint(), IsOk());
  EXPECT_THAT(recovered.QueryInt(kCount), IsOkAndHolds(213));
  EXPECT_THAT(recovered.QueryInt("SELECT COUNT(*) FROM pragma_integrity_check() WHERE "
                                 "integrity_check = 'ok'"),
              IsOkAndHolds(1));
}

// A transaction that outgrows the cache writes pages into the log before it knows all of them, and
// then writes some again in their old places.
TEST_F(CheckedVfsTest, TransactionsMayOutgrowTheCache) {
  Db db = Open();
  ASSERT_THAT(db.Exec("PRAGMA cache_size = 10"), IsOk());
  Fill(&db, 1);

  ASSERT_THAT(db.Transact([&]() -> absl::Status {
    for (int i = 0; i < 20; ++i) {
      Fill(&db, 100);
      if (absl::Status status = db.Exec("UPDATE a SET x = randomblob(3000) WHERE rowid % 7 = 0");
          !status.ok())
        return status;
    }
    return absl::OkStatus();
  }),
              IsOk());

  EXPECT_THAT(Db::Open(path_, OpenMode::kReadOnly)->QueryInt(kCount), IsOkAndHolds(2001));
  for (const char* suffix : {"", "-wal"})
    CHECK_OK(WriteFileAtomic(absl::StrCat(dir_.Path("b.db"), suffix),
                             *ReadFile(path_ + suffix, kFileBytesMax)));
  EXPECT_THAT(Db::Open(dir_.Path("b.db"), OpenMode::kReadWriteCreate)->QueryInt(kCount),
              IsOkAndHolds(2001));
  EXPECT_THAT(db.Checkpoint(), IsOk());
}

// Some of its pages are in the log and some are on their way there.
TEST_F(CheckedVfsTest, WhatIsTakenBackLeavesTheLogWhole) {
  Db db = Open();
  ASSERT_THAT(db.Exec("PRAGMA cache_size = 10"), IsOk());
  Fill(&db, 1);
  for (const int row_count : {5, 40, 70, 3}) {
    EXPECT_THAT(db.Transact([&] {
      Fill(&db, row_count);
      return absl::AbortedError("taken back");
    }),
                StatusIs(absl::StatusCode::kAborted));
    Fill(&db, 2);
    EXPECT_THAT(Db::Open(path_, OpenMode::kReadOnly)->QueryInt("SELECT SUM(LENGTH(HEX(x))) FROM a"),
                IsOkAndHolds(6000 * *db.QueryInt("SELECT COUNT(x) FROM a")));
  }

  for (const char* suffix : {"", "-wal"})
    CHECK_OK(WriteFileAtomic(absl::StrCat(dir_.Path("b.db"), suffix),
                             *ReadFile(path_ + suffix, kFileBytesMax)));
  EXPECT_THAT(Db::Open(dir_.Path("b.db"), OpenMode::kReadWriteCreate)->QueryInt(kCount),
              IsOkAndHolds(9));
}

TEST_F(CheckedVfsTest, OtherProgramsCanReadAndCopyTheLog) {
  {
    Db db = Open();
    Fill(&db, 20);
    for (const char* suffix : {"", "-wal"})
      CHECK_OK(WriteFileAtomic(absl::StrCat(dir_.Path("b.db"), suffix),
                               *ReadFile(path_ + suffix, kFileBytesMax)));
  }
  {
    // Recovers, reads, and at its end copies the log into the database, without our VFS.
    Db plain = *Db::Open(dir_.Path("b.db"), OpenMode::kUnsealed);
    EXPECT_THAT(plain.QueryInt(kCount), IsOkAndHolds(20));
  }
  EXPECT_FALSE(FileExists(dir_.Path("b.db-wal")));

  EXPECT_THAT(Db::Open(dir_.Path("b.db"), OpenMode::kReadWriteCreate)->QueryInt(kCount),
              IsOkAndHolds(20));
}

TEST_F(CheckedVfsTest, WhatAnotherProgramWritesIsRefused) {
  {
    Db db = Open();
    Fill(&db, 20);
  }
  ASSERT_THAT(Db::Open(path_, OpenMode::kUnsealed)->Exec("UPDATE a SET x = zeroblob(3000)"),
              IsOk());

  EXPECT_THAT(Open().QueryInt(kCount),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("another program")));
}

}  // namespace
}  // namespace assay::store
