#include "server/store/visible_rows.h"

#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/store/sqlite.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;

const char* const kOrganizations[] = {"",      "A",     "B",   "A+B", "B+A",   "A+B+C",
                                      "AB",    "A%+B",  "A B", "a",   "+",     "A+",
                                      "Lab_X", "Lab X", "'",   "\"",  "Straße"};
constexpr int64_t kTimes[] = {-1, 0, 1, 999, 1000, 1001, 5'000'000'000'000'000};

// The condition against the function, on every row for everybody.
TEST(VisibleRowsTest, SqlSeesWhatTheFunctionSees) {
  const assay::testing::TempDir dir;
  Db db = *Db::Open(dir.Path("rows.db"), OpenMode::kReadWriteCreate);
  ASSERT_THAT(db.Exec("CREATE TABLE t (organization TEXT NOT NULL, published_at_us INTEGER "
                      "NOT NULL) STRICT"),
              IsOk());
  Stmt insert = *db.Prepare("INSERT INTO t VALUES (?1, ?2)");
  for (const char* organization : kOrganizations)
    for (const int64_t at_us : kTimes)
      ASSERT_THAT(insert.Run(std::string(organization), at_us), IsOk());
  Stmt select = *db.Prepare(absl::StrCat("SELECT s.organization, s.published_at_us, ?1, ",
                                         VisibleRows("s", 2), " FROM t s"));

  int seen = 0;
  for (const bool sees_all : {false, true})
    for (const bool sees_published : {false, true})
      for (const char* organization : kOrganizations) {
        const core::VisibleTo viewer = {sees_all, organization, sees_published, /*now_us=*/1000};
        const VisibleParameters bound(viewer);
        ASSERT_THAT(select.Bind(0, bound.sees_all, bound.organization, bound.published_until_us),
                    IsOk());
        int rows = 0;
        while (*select.Step()) {
          ++rows;
          const core::Disclosure entry = {std::string(select.Text(0)), select.Int(1)};
          seen += core::MaySee(viewer, entry) ? 1 : 0;
          EXPECT_EQ(select.Int(3) != 0, core::MaySee(viewer, entry))
              << "viewer " << organization << " all=" << sees_all << " published=" << sees_published
              << ", entry of \"" << entry.organization << "\" at " << entry.published_at_us;
        }
        ASSERT_EQ(rows, std::ssize(kOrganizations) * std::ssize(kTimes));
      }
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace assay::store
