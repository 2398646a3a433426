#include "common/database/database_file.h"

#include <sqlite3.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DatabaseFileTest : public ::testing::Test {
 protected:
  std::vector<std::string> Texts(const std::string& sql) {
    sqlite3* db = nullptr;
    sqlite3_stmt* statement = nullptr;
    std::vector<std::string> texts;
    EXPECT_EQ(sqlite3_open_v2(path_.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    while (statement != nullptr && sqlite3_step(statement) == SQLITE_ROW)
      texts.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return texts;
  }

  const testing::TempDir dir_;
  const std::string path_ = dir_.Path("out.sqlite");
};

TEST_F(DatabaseFileTest, KeepsValuesAsTheyAre) {
  auto file = DatabaseFile::Create(path_);
  ASSERT_THAT(file, IsOk());
  const std::string name = "odd \" name";
  ASSERT_THAT(file->Run("CREATE TABLE t (" + SqlName(name) + ", b)"), IsOk());
  const std::string zero("a\0b'", 4);
  for (const DatabaseValue& value : std::vector<DatabaseValue>{
           {}, int64_t{9'007'199'254'740'993}, 0.1, std::string("it's"), zero})
    ASSERT_THAT(
        file->Run("INSERT INTO t VALUES (?, ?)", std::vector<DatabaseValue>{value, int64_t{1}}),
        IsOk());
  ASSERT_THAT(file->Finish(), IsOk());

  EXPECT_THAT(Texts("SELECT quote(" + SqlName(name) + ") FROM t LIMIT 4"),
              ElementsAre("NULL", "9007199254740993", "0.1", "'it''s'"));
  EXPECT_THAT(Texts("SELECT length(CAST(" + SqlName(name) + " AS BLOB)) FROM t WHERE rowid = 5"),
              ElementsAre("4"));
}

TEST_F(DatabaseFileTest, IsThereWhenItIsWholeOrNotAtAll) {
  ASSERT_THAT(WriteFileAtomic(path_, "before"), IsOk());
  {
    auto file = DatabaseFile::Create(path_);
    ASSERT_THAT(file, IsOk());
    ASSERT_THAT(file->Run("CREATE TABLE t (a UNIQUE)"), IsOk());
    const std::vector<DatabaseValue> one = {int64_t{1}};
    ASSERT_THAT(file->Run("INSERT INTO t VALUES (?)", one), IsOk());
    EXPECT_THAT(file->Run("INSERT INTO t VALUES (?)", one),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path_)));
    EXPECT_EQ(*ReadFile(path_), "before");
  }
  EXPECT_EQ(*ReadFile(path_), "before");
  EXPECT_THAT(*ListDirectory(dir_.path()), ElementsAre("out.sqlite"));
}

TEST_F(DatabaseFileTest, SaysWhereNoFileCanBeMade) {
  EXPECT_THAT(DatabaseFile::Create(dir_.Path("no/out.sqlite")).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/out.sqlite")));
  EXPECT_THAT(*ListDirectory(dir_.path()), IsEmpty());
}

}  // namespace
}  // namespace assay
