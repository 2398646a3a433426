// A database as the first schema would have held it, made of a present one by taking away what
// migrations have added since.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::TempDir;
using core::RunId;
using core::testing::World;

// A world that commits every outcome.
class FirstSchemaTest : public ::testing::Test {
 protected:
  TempDir dir_;
  const std::string path_ = dir_.Path("assay.db");
  std::unique_ptr<Store> store_ = *Store::Open(path_);
  World world_{[this](const core::Outcome& outcome, const core::State& state) {
    CHECK_OK(store_->Commit(outcome, state));
  }};
};

TEST_F(FirstSchemaTest, IsReadAsIfNothingHadBeenAdded) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  world_.Submit();
  world_.Executing("w0", RunId{1});
  store_.reset();
  {
    Db db = *Db::Open(path_, OpenMode::kReadWriteCreate);
    for (const char* column :
         {"clock_offset_us", "clock_offset_uncertainty_us", "first_touch_us", "observed_touch_us"})
      ASSERT_THAT(db.Exec(absl::StrCat("ALTER TABLE run_nodes DROP COLUMN ", column)), IsOk());
    ASSERT_THAT(
        db.Exec("UPDATE runs SET body = json_remove(body, '$.first_touch', '$.observed_touch')"),
        IsOk());
    for (const char* column : {"organization", "system", "benchmark", "round"})
      ASSERT_THAT(db.Exec(absl::StrCat("CREATE INDEX submissions_by_", column, " ON submissions (",
                                       column, ")")),
                  IsOk());
    ASSERT_THAT(db.Exec("CREATE INDEX runs_by_organization ON runs (organization)"), IsOk());
    ASSERT_THAT(db.Exec("UPDATE workers SET body = json_remove(body, '$.certificate_generation', "
                        "'$.certificates_revoked_at_us')"),
                IsOk());
    ASSERT_THAT(db.Exec("ALTER TABLE run_events DROP COLUMN is_late; "
                        "ALTER TABLE run_events DROP COLUMN is_attributed; DROP INDEX "
                        "artifacts_judged; ALTER TABLE artifacts DROP COLUMN is_late"),
                IsOk());
    ASSERT_THAT(
        db.Exec("CREATE TABLE first (principal TEXT NOT NULL, request_id TEXT NOT NULL, "
                "made TEXT NOT NULL, PRIMARY KEY (principal, request_id)) STRICT, WITHOUT ROWID; "
                "INSERT INTO first (principal, request_id, made) "
                "SELECT principal, request_id, made FROM requests; "
                "DROP TABLE requests; ALTER TABLE first RENAME TO requests"),
        IsOk());
    ASSERT_THAT(
        db.Exec(
            "DROP INDEX workers_by_allocation; ALTER TABLE workers DROP COLUMN allocation_id; "
            "ALTER TABLE workers DROP COLUMN is_forgotten; "
            "ALTER TABLE tokens DROP COLUMN is_forgotten; DROP TABLE allocations; "
            "DROP TABLE imports; DROP TABLE borrowings; DROP TABLE node_rates; "
            "DROP TABLE passed_preflights; DROP TABLE disclosures; DROP TABLE views; "
            "DROP TABLE run_findings; DROP TABLE hyperparameters; DROP TABLE run_facts; "
            "DROP TABLE entry_facts; DELETE FROM counters WHERE name = 'facts_version'; "
            "DELETE FROM counters WHERE name = 'last_allocation'; "
            "UPDATE workers SET body = json_remove(body, '$.allocation', '$.is_forgotten'); "
            "UPDATE runs SET body = json_remove(body, '$.allocation'); "
            "DROP TABLE log_identity; DROP TABLE rule_packs; ALTER TABLE events DROP COLUMN chain;"
            "ALTER TABLE events DROP COLUMN lines; PRAGMA user_version = 1"),
        IsOk());
  }
  ASSERT_THAT(RemoveTree(dir_.Path("mark")), IsOk());

  store_ = *Store::Open(path_);

  core::State expected = world_.state();
  const int64_t last_us = world_.log().back().at_us;  // when they were answered was not kept
  expected.requests = {{{{"operator", ""}, "alice", "request-1"}, {"e-1", last_us}},
                       {{{"submitter", "lab"}, "alice", "request-1"}, {"e-1", last_us}}};
  expected.allocations.clear();
  expected.last_allocation = 0;
  expected.workers.at("w0").allocation = {};
  expected.runs.at(RunId{1}).allocation = {};
  const auto loaded = store_->Load();
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(*loaded, expected);
}

}  // namespace
}  // namespace assay::store
