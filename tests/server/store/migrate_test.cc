#include "server/store/migrate.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::testing::HasSubstr;

constexpr Migration kFirst[] = {{"0001_a.sql", "CREATE TABLE a (x INTEGER) STRICT;"}};
constexpr Migration kBoth[] = {{"0001_a.sql", "CREATE TABLE a (x INTEGER) STRICT;"},
                               {"0002_b.sql", "ALTER TABLE a ADD COLUMN y TEXT;"}};
constexpr Migration kBroken[] = {{"0001_a.sql", "CREATE TABLE a (x INTEGER) STRICT;"},
                                 {"0002_b.sql", "CREATE TABLE b (y TEXT); SELECT nonsense;"}};

class MigrateTest : public ::testing::Test {
 protected:
  Db Open() { return *Db::Open(path_, OpenMode::kReadWriteCreate); }

  TempDir dir_;
  const std::string path_ = dir_.Path("assay.db");
};

TEST_F(MigrateTest, UpgradesAnOlderDatabaseAfterABackup) {
  {
    Db db = Open();
    ASSERT_THAT(Migrate(&db, path_, kFirst), IsOk());
    ASSERT_THAT(db.Exec("INSERT INTO a VALUES (7)"), IsOk());
  }
  EXPECT_FALSE(FileExists(path_ + ".v0.bak")) << "an empty database needs none";

  Db db = Open();
  ASSERT_THAT(Migrate(&db, path_, kBoth), IsOk());

  EXPECT_THAT(db.QueryInt("PRAGMA user_version"), IsOkAndHolds(2));
  EXPECT_THAT(db.QueryInt("SELECT x FROM a WHERE y IS NULL"), IsOkAndHolds(7));
  Db backup = *Db::Open(path_ + ".v1.bak", OpenMode::kReadWriteCreate);
  EXPECT_THAT(backup.QueryInt("PRAGMA user_version"), IsOkAndHolds(1));
  EXPECT_THAT(backup.QueryInt("SELECT x FROM a"), IsOkAndHolds(7));
}

TEST_F(MigrateTest, RefusesANewerDatabase) {
  Db db = Open();
  ASSERT_THAT(Migrate(&db, path_, kBoth), IsOk());

  EXPECT_THAT(Migrate(&db, path_, kFirst),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("version 2")));
}

TEST_F(MigrateTest, AStepHappensWholeOrNotAtAll) {
  Db db = Open();

  EXPECT_THAT(Migrate(&db, path_, kBroken),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("0002_b.sql")));

  EXPECT_THAT(db.QueryInt("PRAGMA user_version"), IsOkAndHolds(1));
  EXPECT_THAT(db.QueryInt("SELECT COUNT(name) FROM sqlite_schema WHERE name = 'b'"),
              IsOkAndHolds(0));
}

// A database as programs of before page checksums made it: no reserve in its pages.
TEST_F(MigrateTest, AddsPageChecksumsToAnOlderDatabaseAfterABackup) {
  ASSERT_THAT(WriteFileAtomic(path_, ""), IsOk());
  {
    Db db = *Db::Open(path_, OpenMode::kUnsealed);
    ASSERT_THAT(db.Exec("PRAGMA journal_mode = WAL; CREATE TABLE a (x BLOB) STRICT;"
                        "INSERT INTO a VALUES (randomblob(100)), (zeroblob(2000000));"
                        "PRAGMA user_version = 1"),
                IsOk());
  }
  EXPECT_THAT(Db::Open(path_, OpenMode::kReadOnly),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("page 1")));

  ASSERT_THAT(AddPageChecksums(path_), IsOk());
  ASSERT_THAT(AddPageChecksums(path_), IsOk()) << "nothing is left to do";

  Db db = Open();
  EXPECT_THAT(db.QueryInt("PRAGMA user_version"), IsOkAndHolds(1));
  EXPECT_THAT(db.QueryInt("SELECT SUM(LENGTH(x)) FROM a"), IsOkAndHolds(2000100));
  ASSERT_THAT(db.Exec("INSERT INTO a VALUES (randomblob(1000000))"), IsOk());
  ASSERT_THAT(db.Checkpoint(), IsOk());
  EXPECT_THAT(*ReadFile(path_), HasSubstr("ASP1"));
  Db backup = *Db::Open(path_ + ".v1.bak", OpenMode::kUnsealed);
  EXPECT_THAT(backup.QueryInt("SELECT SUM(LENGTH(x)) FROM a"), IsOkAndHolds(2000100));
  EXPECT_FALSE(FileExists(path_ + ".sealed"));
}

// migrations/schema.sql is what all steps together come to. Rewrite it after adding one:
//   ASSAY_UPDATE_GOLDEN=1 build/dev/tests/server_store_test --gtest_filter='*SchemaFile*'
TEST_F(MigrateTest, SchemaFileIsTheSumOfTheSteps) {
  Db db = Open();
  ASSERT_THAT(Migrate(&db, path_, EmbeddedMigrations()), IsOk());
  Stmt stmt = *db.Prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name");
  std::string schema = "-- Generated: the schema after all migrations. See migrate_test.cc.\n";
  while (*stmt.Step())
    absl::StrAppend(&schema, "\n", stmt.Text(0), ";\n");

  if (std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr) {
    ASSERT_THAT(WriteFileAtomic("migrations/schema.sql", schema), IsOk());
  }

  EXPECT_THAT(ReadFile("migrations/schema.sql"), IsOkAndHolds(schema));
}

// Who made a request before 0005 is known by name only.
TEST_F(MigrateTest, RequestsAreFoundAgainInTheirOrganization) {
  std::vector<Migration> before;
  for (const Migration& migration : EmbeddedMigrations())
    if (absl::string_view(migration.name) < "0005") before.push_back(migration);
  Db db = Open();
  ASSERT_THAT(Migrate(&db, path_, before), IsOk());
  ASSERT_THAT(
      db.Exec(
          "INSERT INTO submissions (id, state, organization, system, benchmark, "
          "division, round, created_at_us, ended_at_us, body) "
          "VALUES (7, 'OPEN', 'lab', 's', 'b', 'open', 'v1.0', 0, 0, '{\"source_path\": \"a\"}');"
          "INSERT INTO requests (principal, request_id, made) "
          "VALUES ('ci', 'nightly', 'e-7'), ('root', 'x', 't-7'), "
          "(':import', 'v1.0 a', 'e-7')"),
      IsOk());

  ASSERT_THAT(Migrate(&db, path_, EmbeddedMigrations()), IsOk());

  const auto count = [&db](const std::string& where) {
    return db.QueryInt(absl::StrCat("SELECT COUNT(made) FROM requests WHERE ", where));
  };
  EXPECT_THAT(count("role = 'submitter' AND organization = 'lab' AND principal = 'ci' "
                    "AND request_id = 'nightly' AND made = 'e-7'"),
              IsOkAndHolds(1));
  EXPECT_THAT(count("role = 'operator' AND organization = '' AND principal = 'ci'"),
              IsOkAndHolds(1));
  EXPECT_THAT(count("role = 'operator' AND principal = 'root' AND made = 't-7'"), IsOkAndHolds(1));
  EXPECT_THAT(count("TRUE"), IsOkAndHolds(3)) << "an import is no request";
  EXPECT_THAT(db.QueryInt("SELECT submission_id FROM imports WHERE round = 'v1.0' AND "
                          "source_path = 'a'"),
              IsOkAndHolds(7));
}

TEST(SqliteTest, TellsFilesThatAreNoDatabase) {
  TempDir dir;
  ASSERT_THAT(WriteFileAtomic(dir.Path("x"), std::string(5000, 'x')), IsOk());

  EXPECT_THAT(Db::Open(dir.Path("x"), OpenMode::kReadWriteCreate),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_FALSE(Db::Open(dir.Path("absent"), OpenMode::kReadOnly).ok());
}

TEST(SqliteTest, RefusesDoubleQuotedStringsAndTooManyValues) {
  TempDir dir;
  Db db = *Db::Open(dir.Path("x"), OpenMode::kReadWriteCreate);

  EXPECT_FALSE(db.Prepare("SELECT \"text\"").ok());
  Stmt stmt = *db.Prepare("SELECT ?1");
  EXPECT_THAT(stmt.Bind(1, 2), StatusIs(absl::StatusCode::kInternal));
}

}  // namespace
}  // namespace assay::store
