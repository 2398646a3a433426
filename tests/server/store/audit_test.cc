// The audit: what people did, to what, and what was refused.

#include "server/store/audit.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/log.h"
#include "server/store/reader.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::TempDir;
using core::SubmissionId;
using core::testing::World;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A world that commits every outcome.
class AuditTest : public ::testing::Test {
 protected:
  std::unique_ptr<Reader> OpenReader() { return *Reader::Open(path_); }

  TempDir dir_;
  const std::string path_ = dir_.Path("assay.db");
  std::unique_ptr<Store> store_ = *Store::Open(path_);
  World world_{[this](const core::Outcome& outcome, const core::State& state) {
    CHECK_OK(store_->Commit(outcome, state));
  }};
};

TEST_F(AuditTest, AuditsWhatPeopleDid) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  const SubmissionId id = world_.Submit();
  ASSERT_THAT(world_.Do(core::DrainWorker{"w0", "disk"}, "root"), IsOk());
  const auto reader = OpenReader();

  const auto audit = *reader->Audit({});
  const auto of_submission = *reader->EventsAfter({.organization = "lab"}, id, 0, 100);

  std::vector<std::string> texts;
  for (const core::AuditRow& row : audit) {
    EXPECT_EQ(row.event.body_json, "") << "on demand";
    texts.push_back(absl::StrCat(row.event.principal, " ", row.event.type, " of ", row.object, ": ",
                                 row.detail));
  }
  EXPECT_THAT(
      texts,
      ElementsAre("alice DatasetAdded of datasets/cosmo32: ", "w0 WorkerRegistered of workers/w0: ",
                  "coordinator AllocationRequested of allocations/a-1: worker w0 came by "
                  "itself",
                  "alice SubmissionCreated of submissions/e-1: ",
                  "root WorkerStateChanged of workers/w0: DRAINING disk"));
  ASSERT_THAT(of_submission, SizeIs(2));
  EXPECT_EQ(of_submission[1].type, "RunAssigned");
  EXPECT_EQ(*reader->LastSeq(), audit.back().event.seq);
  EXPECT_THAT(*reader->Audit({.after_seq = audit[3].event.seq}), SizeIs(1));
}

TEST_F(AuditTest, TheAuditHasTheHistoryOfAPersonAndOfAThing) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  const SubmissionId id = world_.Submit();
  ASSERT_THAT(world_.Do(core::DrainWorker{"w0", "disk"}, "root"), IsOk());
  ASSERT_THAT(
      world_.Do(core::RecordRefusal{{"mallory", "ipv4:10.0.0.9", "CreateToken", "is reader", 3, 7}},
                "mallory"),
      IsOk());
  const auto reader = OpenReader();
  const auto types = [&reader](const core::AuditQuestion& question) {
    const std::vector<core::AuditRow> rows = *reader->Audit(question);
    std::vector<std::string> found;
    for (const core::AuditRow& row : rows)
      found.push_back(row.event.type);
    return found;
  };

  EXPECT_THAT(types({.principal = "root"}), ElementsAre("WorkerStateChanged"));
  EXPECT_THAT(types({.object = "workers/w0"}),
              ElementsAre("WorkerRegistered", "WorkerStateChanged"));
  EXPECT_THAT(types({.object = absl::StrCat("submissions/", id.ToString())}),
              ElementsAre("SubmissionCreated"));
  EXPECT_THAT(types({.object = "datasets/cosmo32"}), ElementsAre("DatasetAdded"));
  EXPECT_THAT(types({.object = "datasets/x' OR 1=1 --"}), IsEmpty());
  EXPECT_THAT(types({.is_newest_first = true, .limit = 2}),
              ElementsAre("CallsRefused", "WorkerStateChanged"));
  const std::vector<core::AuditRow> of_mallory = *reader->Audit({.principal = "mallory"});
  ASSERT_THAT(of_mallory, SizeIs(1));
  const core::AuditRow& refused = of_mallory.front();
  EXPECT_EQ(refused.detail, "CreateToken from ipv4:10.0.0.9, 3 times: is reader");
  EXPECT_THAT(types({.is_newest_first = true, .after_seq = refused.event.seq, .limit = 1}),
              ElementsAre("WorkerStateChanged"));
  EXPECT_THAT(types({.since_us = refused.event.at_us + 1}), IsEmpty());
}

}  // namespace
}  // namespace assay::store
