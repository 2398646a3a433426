#include "server/store/store.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "server/store/codec.h"
#include "server/store/reader.h"
#include "server/store/sqlite.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using core::RunId;
using core::SubmissionId;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// A world that commits every outcome.
class StoreTest : public ::testing::Test {
 protected:
  core::State Load() {
    const auto state = store_->Load();
    CHECK_OK(state.status());
    return *state;
  }

  void Restart() {
    store_.reset();
    store_ = *Store::Open(path_);
  }

  std::vector<core::RunEvent> Lines(int64_t first, int64_t last) {
    std::vector<core::RunEvent> events;
    for (int64_t seq = first; seq <= last; ++seq)
      events.push_back({.seq = seq, .text = absl::StrCat("line ", seq), .line = seq});
    return events;
  }

  std::unique_ptr<Reader> OpenReader() { return *Reader::Open(path_); }

  TempDir dir_;
  const std::string path_ = dir_.Path("assay.db");
  std::unique_ptr<Store> store_ = *Store::Open(path_);
  World world_{[this](const core::Outcome& outcome, const core::State& state) {
    CHECK_OK(store_->Commit(outcome, state));
  }};
};

TEST_F(StoreTest, LoadsWhatWasCommittedAndWhatTheLogFoldsTo) {
  core::SubmissionSpec spec = SomeSpec();
  spec.node_count = 2;
  spec.run_count = 2;
  spec.replacement_count_max = 1;
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  ASSERT_THAT(world_.Do(core::CreateToken{.request_id = "t",
                                          .role = "operator",
                                          .principal = "root",
                                          .secret_sha256 = std::string(64, '1'),
                                          .expires_at_us = world_.now_us() * 2}),
              IsOk());
  const SubmissionId first = world_.Submit(spec);
  world_.Succeed(RunId{1});
  world_.Executing("w0", RunId{2});
  world_.Executing("w1", RunId{2});
  ASSERT_THAT(world_.Do(core::AppendRunEvents{RunId{2}, 1, 0, Lines(1, 5), "w0"}), IsOk());
  ASSERT_THAT(
      world_.Do(core::RecordArtifact{RunId{2}, 1, {"result_2.txt", std::string(64, 'a'), 5}, "w0"}),
      IsOk());
  world_.Finished("w1", RunId{2}, 139);
  world_.Finished("w0", RunId{2}, 4);
  world_.Submit();
  ASSERT_THAT(world_.Do(core::DrainWorker{"w1", "disk"}), IsOk());

  EXPECT_EQ(Load(), world_.state());
  EXPECT_EQ(world_.Fold(), world_.state());
  Restart();
  EXPECT_EQ(Load(), world_.state());

  // What ends leaves memory, but not the store; ids go on from where they were.
  ASSERT_THAT(world_.Do(core::CancelSubmission{first, "enough"}), IsOk());
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  EXPECT_EQ(world_.state().submissions.count(first), 0u);
  EXPECT_EQ(Load(), world_.state());
  EXPECT_EQ(world_.Fold(), world_.state());
  EXPECT_EQ(OpenReader()->GetSubmission(first)->state_reason, "cancelled by alice: enough");
}

TEST_F(StoreTest, KeepsWhatNodesHavePassedUntilTheirSetEnds) {
  const TempDir directory;
  const std::string path = directory.Path("assay.db");
  std::unique_ptr<Store> store = *Store::Open(path);
  core::Policy policy;
  policy.preflight.checks = {{.check = "memory", .policy = core::CheckPolicy::kGate}};
  World world([&store](const core::Outcome& outcome,
                       const core::State& state) { CHECK_OK(store->Commit(outcome, state)); },
              policy);
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId set = world.Submit();
  const core::PreflightReport report{
      .number = world.worker("w0").preflight->number,
      .is_done = true,
      .checks = {{.check = "memory", .is_measured = true, .value = 12.5, .unit = "GB/s"}}};
  ASSERT_THAT(world.Sync("w0", {.preflight = report}), IsOk());
  store.reset();
  store = *Store::Open(path);
  const core::State before = *store->Load();
  EXPECT_EQ(before, world.state());
  ASSERT_TRUE(before.passed.contains({set, "w0"}));
  EXPECT_EQ(before.passed.at({set, "w0"}).checks.front().value, 12.5);

  ASSERT_THAT(world.Do(core::CancelSubmission{set, ""}), IsOk());
  EXPECT_TRUE(store->Load()->passed.empty());
}

TEST_F(StoreTest, RemembersWhoseCertificatesWereRevoked) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  world_.Submit();
  world_.Executing("w0", RunId{1});
  ASSERT_THAT(world_.Do(core::CreateToken{.kind = core::TokenKind::kEnrol,
                                          .role = "worker",
                                          .principal = "w1",
                                          .secret_sha256 = std::string(64, '1'),
                                          .expires_at_us = world_.now_us() * 2}),
              IsOk());

  ASSERT_THAT(world_.Do(core::RevokeWorker{"w0", "stolen"}, "root"), IsOk());
  ASSERT_THAT(world_.Do(core::RevokeWorker{"w1", ""}, "root"), IsOk());

  Restart();
  const core::State state = Load();
  EXPECT_EQ(state, world_.state());
  EXPECT_EQ(world_.Fold(), world_.state());
  EXPECT_EQ(state.workers.at("w0").certificate_generation, 1);
  EXPECT_EQ(state.workers.at("w1").certificate_generation, 1);
  const std::vector<core::AuditRow> audit =
      *OpenReader()->Audit({.is_newest_first = true, .has_bodies = true});
  const core::EventRow& last = audit.front().event;
  EXPECT_EQ(last.type, "WorkerRevoked");
  EXPECT_EQ(last.principal, "root");
}

TEST_F(StoreTest, RemembersWhoBorrowsUntilItIsCancelled) {
  const SubmissionId own = world_.Submit();
  const SubmissionId lender = world_.Submit();
  core::CreateSubmission creation = core::testing::Creation(SomeSpec(), "borrowing");
  creation.spec.borrowing = core::Borrowing{own, lender};
  creation.borrowing.emplace();
  ASSERT_THAT(world_.Do(creation), IsOk());

  EXPECT_EQ(*OpenReader()->BorrowerOf(own), SubmissionId{3});
  EXPECT_EQ(*OpenReader()->BorrowerOf(lender), SubmissionId{});
  EXPECT_EQ(Load(), world_.state());

  ASSERT_THAT(world_.Do(core::CancelSubmission{SubmissionId{3}, ""}), IsOk());
  EXPECT_EQ(*OpenReader()->BorrowerOf(own), SubmissionId{});
  EXPECT_EQ(Load(), world_.state());
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(StoreTest, KeepsRulePacksAsTheyWereFirst) {
  EXPECT_THAT(store_->LoadRulePacks(), IsOkAndHolds(IsEmpty()));
  ASSERT_THAT(store_->KeepRulePacks({{"a", "rules a"}, {"b", "rules b"}}), IsOk());
  ASSERT_THAT(store_->KeepRulePacks({{"b", "others"}, {"c", "rules c"}}), IsOk());
  Restart();
  EXPECT_THAT(store_->LoadRulePacks(),
              IsOkAndHolds(UnorderedElementsAre(Pair("a", "rules a"), Pair("b", "rules b"),
                                                Pair("c", "rules c"))));
}

TEST_F(StoreTest, EventsInTheLogDecodeToThoseThatHappened) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  const SubmissionId id = world_.Submit();
  world_.Succeed(RunId{1});
  ASSERT_THAT(world_.Do(core::SetScored{id, 3.0, {}, "good"}, "coordinator"), IsOk());

  const auto rows = OpenReader()->EventsAfter({.sees_all = true}, SubmissionId{}, 0, 1000);

  ASSERT_THAT(rows, IsOk());
  ASSERT_EQ(rows->size(), world_.log().size());
  for (size_t i = 0; i < rows->size(); ++i) {
    const core::EventRow& row = (*rows)[i];
    const core::RecordedEvent& event = world_.log()[i];
    EXPECT_EQ(row.seq, event.seq);
    EXPECT_EQ(row.at_us, event.at_us);
    EXPECT_EQ(row.principal, event.principal);
    EXPECT_EQ(row.submission, event.submission);
    EXPECT_EQ(row.run, event.run);
    EXPECT_EQ(*DecodeEvent(row.type, row.version, row.body_json), event.event);
  }
}

TEST_F(StoreTest, FullDiskRefusesAndChangesNothing) {
  world_.Submit();
  const core::State before = Load();
  ASSERT_THAT(store_->LimitPages(1), IsOk());
  absl::Status refused;
  world_.on_outcome = [&](const core::Outcome& outcome, const core::State& state) {
    refused = store_->Commit(outcome, state);
  };
  core::SubmissionSpec large = SomeSpec();
  large.system.assign(4000, 'x');
  for (int i = 0; i < 200 && refused.ok(); ++i)
    world_.Submit(large);

  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("make room")));
  const core::State after = Load();
  EXPECT_EQ(after.last_seq + 1, world_.state().last_seq) << "all before the refused one are there";
  EXPECT_GE(after.last_seq, before.last_seq);

  ASSERT_THAT(store_->LimitPages(1 << 20), IsOk());
  world_.core().Reset(after);
  world_.on_outcome = [this](const core::Outcome& outcome, const core::State& state) {
    CHECK_OK(store_->Commit(outcome, state));
  };
  world_.Submit();
  EXPECT_EQ(Load(), world_.state());
}

TEST_F(StoreTest, TakesLateEvidenceOfARunThatHasLeftMemory) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  const SubmissionId id = world_.Submit();
  ASSERT_THAT(world_.Do(core::CancelSubmission{id, ""}), IsOk());
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  ASSERT_EQ(world_.state().runs.size(), 0u);

  world_.core().Restore(*store_->LoadRun(RunId{1}));
  ASSERT_THAT(world_.Do(core::AppendRunEvents{RunId{1}, 1, 0, Lines(1, 3), "w0"}), IsOk());

  EXPECT_THAT(*OpenReader()->RunEventsAfter(RunId{1}, 0, 0, 10), SizeIs(3));
  EXPECT_EQ(store_->LoadRun(RunId{1})->nodes[0].last_seq, 3);
  EXPECT_EQ(OpenReader()->GetRun(RunId{1})->state, core::RunState::kCancelled);
  EXPECT_THAT(store_->LoadRun(RunId{9}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(Load(), world_.state());
}

TEST_F(StoreTest, ASubmissionThatHasEndedComesBackForWhoeverActsOnIt) {
  core::ImportSubmission import{.spec = SomeSpec(), .source_path = "lab/results"};
  import.runs.resize(2);
  ASSERT_THAT(world_.Do(import), IsOk());
  const SubmissionId id{1};
  ASSERT_THAT(store_->LoadClosed(id)->runs, SizeIs(2));
  EXPECT_THAT(store_->LoadClosed(SubmissionId{7}), StatusIs(absl::StatusCode::kNotFound));

  ASSERT_THAT(world_.Do(core::NoteSubmission{"n", id, "odd"}, "rita"), IsOk());

  const core::ClosedSubmission closed = *store_->LoadClosed(id);
  ASSERT_EQ(closed.submission.notes.size(), 1u);
  EXPECT_EQ(closed.submission.notes[0].author, "rita");
  EXPECT_EQ(OpenReader()->GetSubmission(id)->notes, closed.submission.notes);
  EXPECT_EQ(Load(), world_.state());
  EXPECT_EQ(Load().imports.size(), 1u);
}

TEST_F(StoreTest, CheckpointsBesideTheWriter) {
  auto checkpointer = *Checkpointer::Open(path_);
  for (int i = 0; i < 20; ++i)
    world_.Submit();
  EXPECT_GT(store_->wal_frames(), 0);

  EXPECT_THAT(checkpointer->Run(), IsOkAndHolds(0));
  EXPECT_THAT(store_->Checkpoint(), IsOk());

  world_.Submit();
  EXPECT_LT(store_->wal_frames(), 100) << "the log began anew";
  EXPECT_EQ(Load(), world_.state());
}

// ---------------------------------------------------------------------------------------- queries

TEST_F(StoreTest, ListsSubmissionsNewestFirstPageByPage) {
  for (int i = 0; i < 5; ++i) {
    core::SubmissionSpec spec = SomeSpec();
    spec.organization = i % 2 == 0 ? "even" : "odd";
    world_.Submit(spec);
  }
  ASSERT_THAT(world_.Do(core::CancelSubmission{SubmissionId{3}, ""}), IsOk());
  const auto reader = OpenReader();
  const auto ids = [&](core::SubmissionFilter filter) {
    filter.viewer.sees_all = true;
    std::vector<int64_t> numbers;
    core::PageRequest page{.size = 2};
    do {
      const auto found = reader->ListSubmissions(filter, page);
      CHECK_OK(found.status());
      for (const core::Submission& submission : found->items)
        numbers.push_back(submission.id.number);
      page.token = found->next_page_token;
    } while (!page.token.empty());
    return numbers;
  };
  EXPECT_THAT(ids({}), ElementsAre(5, 4, 3, 2, 1));
  EXPECT_THAT(ids({.organization = "even"}), ElementsAre(5, 3, 1));
  EXPECT_THAT(ids({.organization = "even", .state = core::SubmissionState::kCancelled}),
              ElementsAre(3));
  EXPECT_THAT(ids({.state = core::SubmissionState::kOpen}), ElementsAre(5, 4, 2, 1));
  EXPECT_THAT(ids({.organization = "odd", .system = "sys"}), ElementsAre(4, 2));
  EXPECT_THAT(ids({.benchmark = "cosmoflow", .division = "closed"}), SizeIs(5));
  EXPECT_THAT(ids({.round = "v9"}), SizeIs(0));
  EXPECT_THAT(reader->ListSubmissions({}, {.token = "x"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(StoreTest, ListsRuns) {
  core::SubmissionSpec spec = SomeSpec();
  spec.run_count = 3;
  world_.Submit(spec);
  spec.organization = "other";
  world_.Submit(spec);
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  const auto reader = OpenReader();
  const auto ids = [&](core::RunFilter filter) {
    if (filter.viewer.organization.empty()) filter.viewer.sees_all = true;
    std::vector<int64_t> numbers;
    core::PageRequest page{.size = 2};
    do {
      const auto found = reader->ListRuns(filter, page);
      CHECK_OK(found.status());
      for (const core::SeenRun& seen : found->items)
        numbers.push_back(seen.run.id.number);
      page.token = found->next_page_token;
    } while (!page.token.empty());
    return numbers;
  };
  EXPECT_THAT(ids({}), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(ids({.submission = SubmissionId{2}}), ElementsAre(4, 5, 6));
  EXPECT_THAT(ids({.state = core::RunState::kAssigned}), ElementsAre(1));
  EXPECT_THAT(ids({.state = core::RunState::kQueued, .viewer = {.organization = "other"}}),
              ElementsAre(6, 5, 4));
  EXPECT_THAT(ids({.submission = SubmissionId{1}, .state = core::RunState::kQueued}),
              ElementsAre(2, 3));
  EXPECT_THAT(*reader->RunsOf(SubmissionId{1}), SizeIs(3));
  EXPECT_EQ(reader->GetRun(RunId{1})->nodes[0].worker, "w0");
  EXPECT_THAT(reader->GetRun(RunId{99}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(reader->GetSubmission(SubmissionId{99}), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StoreTest, FollowsTheLinesOfOneNodeOrOfAll) {
  core::SubmissionSpec spec = SomeSpec();
  spec.node_count = 2;
  world_.Submit(spec);
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  std::vector<core::RunEvent> with_finding = Lines(1, 2);
  with_finding[1].kind = core::RunEventKind::kFinding;
  with_finding[1].finding = core::Finding{.rule_id = "R-1", .line = 2};
  with_finding[0].text = std::string("\0\xff", 2);
  ASSERT_THAT(world_.Do(core::AppendRunEvents{RunId{1}, 1, 1, with_finding, "w1"}), IsOk());
  ASSERT_THAT(world_.Do(core::AppendRunEvents{RunId{1}, 1, 0, Lines(1, 4), "w0"}), IsOk());
  const auto reader = OpenReader();

  const auto all = *reader->RunEventsAfter(RunId{1}, -1, 0, 100);
  const auto of_first = *reader->RunEventsAfter(RunId{1}, 0, 2, 100);

  ASSERT_THAT(all, SizeIs(6));
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i].order, static_cast<int64_t>(i) + 1);
  EXPECT_EQ(all[0].text, with_finding[0].text);
  EXPECT_EQ(all[1].finding->rule_id, "R-1");
  EXPECT_EQ(all[1].kind, core::RunEventKind::kFinding);
  EXPECT_EQ(all[1].receive_us, world_.now_us());
  ASSERT_THAT(of_first, SizeIs(2));
  EXPECT_EQ(of_first[0].seq, 3);
  EXPECT_THAT(*reader->RunEventsAfter(RunId{1}, -1, 4, 1), SizeIs(1));
}

TEST_F(StoreTest, TellsWhatAgentsFoundInTime) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  core::SubmissionSpec spec = SomeSpec();
  spec.run_count = 2;
  world_.Submit(spec);
  std::vector<core::RunEvent> events = Lines(1, 3);
  events[1].kind = core::RunEventKind::kFinding;
  events[1].finding = core::Finding{.rule_id = "R-PAU-001"};
  ASSERT_THAT(world_.Do(core::AppendRunEvents{RunId{1}, 1, 0, events, "w0"}), IsOk());
  world_.Succeed(RunId{1});
  events = {events[1]};
  events[0].seq = 4;
  ASSERT_THAT(world_.Do(core::AppendRunEvents{RunId{1}, 1, 0, events, "w0"}), IsOk());

  const auto found = OpenReader()->FindingsOf(RunId{1}, 10);

  ASSERT_THAT(found, IsOk());
  ASSERT_THAT(*found, SizeIs(1)) << "the late one does not count";
  EXPECT_EQ((*found)[0].rule_id, "R-PAU-001");
}

TEST_F(StoreTest, KeepsWhatCameLateApart) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  core::SubmissionSpec spec = SomeSpec();
  spec.run_count = 2;
  world_.Submit(spec);
  const core::ArtifactRef judged{"result_1.txt", std::string(64, 'a'), 5};
  const core::ArtifactRef late{"result_1.txt", std::string(64, 'b'), 6};
  ASSERT_THAT(world_.Do(core::AppendRunEvents{RunId{1}, 1, 0, Lines(1, 2), "w0"}), IsOk());
  ASSERT_THAT(world_.Do(core::RecordArtifact{RunId{1}, 1, judged, "w0"}), IsOk());
  world_.Succeed(RunId{1});

  ASSERT_THAT(world_.Do(core::AppendRunEvents{RunId{1}, 1, 0, Lines(3, 3), "w0"}), IsOk());
  ASSERT_THAT(world_.Do(core::RecordArtifact{RunId{1}, 1, late, "w0"}), IsOk());

  const auto reader = OpenReader();
  const auto events = *reader->RunEventsAfter(RunId{1}, 0, 0, 100);
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_FALSE(events[1].is_late);
  EXPECT_TRUE(events[2].is_late);
  EXPECT_THAT(reader->GetRun(RunId{1})->artifacts, ElementsAre(judged));
  EXPECT_THAT(reader->GetRun(RunId{1})->late_artifacts, ElementsAre(late));
  EXPECT_EQ(reader->GetArtifact({.sees_all = true}, late.sha256)->artifact, late)
      << "it can be read";
  EXPECT_EQ(Load(), world_.state());
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(StoreTest, FindsDatasetsTokensAndArtifacts) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  const SubmissionId id = world_.Submit();
  const std::string digest(64, 'a');
  ASSERT_THAT(world_.Do(core::RecordArtifact{RunId{1}, 1, {"result_1.txt", digest, 5}, "w0"}),
              IsOk());
  core::ImportSubmission import{.spec = SomeSpec(), .source_path = "a/b"};
  import.runs.push_back({{"result_0.txt", std::string(64, 'b'), 9}, {}, "result_0.txt"});
  ASSERT_THAT(world_.Do(import), IsOk());
  const auto reader = OpenReader();

  const auto artifact = reader->GetArtifact({.organization = "lab"}, digest);

  ASSERT_THAT(artifact, IsOk());
  EXPECT_EQ(artifact->submission, id);
  EXPECT_EQ(artifact->organization, "lab");
  EXPECT_EQ(artifact->artifact.file_name, "result_1.txt");
  EXPECT_EQ(reader->GetArtifact({.sees_all = true}, std::string(64, 'b'))->artifact.size_bytes, 9);
  EXPECT_THAT(reader->GetArtifact({.sees_all = true}, "x"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(reader->GetDataset("cosmo32")->path, "/data/cosmo32");
  EXPECT_THAT(reader->GetDataset("x"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(*reader->ListDatasets(), SizeIs(1));
  EXPECT_THAT(*reader->ListTokens(), SizeIs(0));
  ASSERT_THAT(world_.Do(core::CancelSubmission{id, ""}), IsOk());
  ASSERT_THAT(world_.Do(core::RemoveDataset{"cosmo32"}), IsOk());
  EXPECT_THAT(*reader->ListDatasets(), SizeIs(0));
}

// No question reads a whole table that grows, and none sorts: each step of each plan searches an
// index or a key. Exceptions are the small tables that are listed whole.
TEST_F(StoreTest, EveryQuestionHasAnIndex) {
  const auto plans = OpenReader()->ExplainPlans();
  ASSERT_THAT(plans, IsOk());
  for (const std::string& line : *plans) {
    EXPECT_FALSE(absl::StrContains(line, "TEMP B-TREE")) << line;
    const bool is_small = absl::StartsWith(line, "SCAN datasets") ||
                          absl::StartsWith(line, "SCAN tokens") ||
                          absl::StartsWith(line, "SCAN views");
    // SQLite calls taking the first or last row of a key a search too.
    EXPECT_TRUE(is_small || absl::StartsWith(line, "SEARCH")) << line;
  }
}

}  // namespace
}  // namespace assay::store
