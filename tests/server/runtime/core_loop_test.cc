#include "server/runtime/core_loop.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/log.h"
#include "server/runtime/loop_observer.h"
#include "server/store/core_store.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::runtime {
namespace {

using ::assay::testing::FakeClock;
using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using core::testing::Creation;
using core::testing::SomeSpec;

using MaybeReply = std::optional<absl::StatusOr<core::Reply>>;

// A store whose next commits are refused as told.
class RefusingStore final : public store::CoreStore {
 public:
  explicit RefusingStore(std::unique_ptr<store::Store> store) : store_(std::move(store)) {}

  absl::Status Commit(const core::Outcome& outcome, const core::State& state) override {
    if (outcome.events.empty() || refusals.empty()) return store_->Commit(outcome, state);
    const absl::Status status = refusals.front();
    refusals.pop_front();
    return status;
  }
  absl::StatusOr<core::State> Load() override { return store_->Load(); }
  absl::StatusOr<core::Run> LoadRun(core::RunId id) override { return store_->LoadRun(id); }
  absl::StatusOr<core::ClosedSubmission> LoadClosed(core::SubmissionId id) override {
    return store_->LoadClosed(id);
  }
  absl::Status SyncMark() override { return store_->SyncMark(); }
  int64_t wal_frames() const override { return frames.value_or(store_->wal_frames()); }
  absl::Status Checkpoint() override {
    ++checkpoint_count;
    return store_->Checkpoint();
  }
  int64_t FreeDiskBytes() const override { return store_->FreeDiskBytes(); }

  std::deque<absl::Status> refusals;
  std::optional<int64_t> frames;  // in the place of what there are
  int checkpoint_count = 0;

 private:
  const std::unique_ptr<store::Store> store_;
};

// What it was told, a word each.
class Recorder final : public LoopObserver {
 public:
  void Committed(const Commit& commit) override {
    told.push_back(absl::StrCat("committed ", commit.command_count, " of ", commit.state.last_seq));
  }
  void CommitRefused(const absl::Status& reason) override {
    told.push_back(absl::StrCat("refused ", reason.message()));
  }
  void TurnEnded(const core::Core&) override { told.push_back("turn"); }

  std::vector<std::string> told;
};

const absl::Status kFullDisk = absl::ResourceExhaustedError("the disk is full");
const absl::Status kTooLarge = absl::InvalidArgumentError("a row is too large");

class CoreLoopTest : public ::testing::Test {
 protected:
  CoreLoopTest()
      : store_(*store::Store::Open(dir_.Path("assay.db"))),
        loop_(
            {&clock_, &store_, &watchers_, &tokens_, &certificates_, &recorder_},
            core::Core({}, *store_.Load(), absl::ToUnixMicros(clock_.Wall())), [](const auto&) {},
            [this] { ++begin_count_; }, {}) {
    CHECK_OK(Do(core::AddDataset{core::testing::SomeDataset()}).status());
  }

  // One turn with these commands; what was answered by its end.
  std::vector<MaybeReply> Turn(std::vector<core::CommandBody> bodies) {
    auto replies = std::make_shared<std::vector<MaybeReply>>(bodies.size());
    std::vector<QueuedCommand> batch;
    for (size_t i = 0; i < bodies.size(); ++i) {
      batch.push_back({{"alice", std::move(bodies[i])},
                       [replies, i](auto reply) { (*replies)[i] = std::move(reply); }});
    }
    loop_.HandleBatch(std::move(batch));
    turns_.push_back(replies);
    return *replies;
  }
  absl::StatusOr<core::Reply> Do(core::CommandBody body) {
    return **Turn({std::move(body)}).begin();
  }

  // A worker says what it does; it is answered at once.
  void Report(core::WorkerPhase phase, int64_t poll_timeout_us = 0) {
    core::Synchronize call{.worker = "w0", .poll_timeout_us = poll_timeout_us};
    call.description.incarnation = "i1";
    call.report.phase = phase;
    if (phase != core::WorkerPhase::kIdle) call.report.run = core::RunId{1};
    call.report.generation = phase == core::WorkerPhase::kIdle ? 0 : 1;
    Turn({call});
  }

  TempDir dir_;
  FakeClock clock_;
  RefusingStore store_;
  Watchers watchers_;
  TokenTable tokens_;
  CertificateTable certificates_;
  Recorder recorder_;
  int begin_count_ = 0;  // of checkpoints beside the commits
  CoreLoop loop_;
  std::vector<std::shared_ptr<std::vector<MaybeReply>>> turns_;
};

TEST_F(CoreLoopTest, FinishesACheckpointBetweenTwoCommits) {
  ASSERT_THAT(Do(Creation(SomeSpec(), "a")), IsOk());
  EXPECT_EQ(begin_count_, 0) << "the log is short";
  store_.frames = 5000;
  ASSERT_THAT(Do(Creation(SomeSpec(), "b")), IsOk());
  EXPECT_EQ(begin_count_, 1);
  EXPECT_EQ(store_.checkpoint_count, 0) << "while most of the log is copied beside the commits";

  loop_.FinishCheckpoint();
  ASSERT_THAT(Do(Creation(SomeSpec(), "c")), IsOk());

  EXPECT_EQ(store_.checkpoint_count, 1);
  EXPECT_EQ(begin_count_, 1);
  ASSERT_THAT(Do(Creation(SomeSpec(), "d")), IsOk());
  EXPECT_EQ(store_.checkpoint_count, 1) << "once";
  EXPECT_EQ(begin_count_, 2) << "a reader may have kept it from the end";
}

TEST_F(CoreLoopTest, TellsWhatBecameOfEachTransactionAndTurn) {
  recorder_.told.clear();
  const int64_t seq = loop_.core().state().last_seq;
  ASSERT_THAT(Do(Creation(SomeSpec(), "a")), IsOk());
  const int64_t last_seq = loop_.core().state().last_seq;
  EXPECT_GT(last_seq, seq);
  store_.refusals = {kFullDisk};
  EXPECT_THAT(Do(Creation(SomeSpec(), "b")), StatusIs(absl::StatusCode::kResourceExhausted));
  Turn({});

  EXPECT_THAT(recorder_.told,
              ::testing::ElementsAre(absl::StrCat("committed 1 of ", last_seq), "turn",
                                     "refused the disk is full", "turn", "turn"));
}

// Beside a command that no row can hold, so that each is tried alone.
TEST_F(CoreLoopTest, AFullDiskFailsNoRunWhoseVerdictItRefuses) {
  ASSERT_THAT(Do(Creation(SomeSpec(), "a")), IsOk());
  Report(core::WorkerPhase::kIdle);
  Report(core::WorkerPhase::kExecuting);
  Report(core::WorkerPhase::kFinished);
  ASSERT_EQ(loop_.core().state().runs.at(core::RunId{1}).state, core::RunState::kUploading);

  store_.refusals = {kTooLarge, kTooLarge, kFullDisk};
  const std::vector<MaybeReply> replies =
      Turn({Creation(SomeSpec(), "b"), core::LogChecked{.run = core::RunId{1}}});

  EXPECT_THAT(*replies[0], StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(*replies[1], StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(loop_.core().state().runs.at(core::RunId{1}).state, core::RunState::kUploading);
}

TEST_F(CoreLoopTest, AParkedCallEndsInTimeWhileNothingCanBeCommitted) {
  Report(core::WorkerPhase::kIdle, 3'000'000);
  ASSERT_FALSE(turns_.back()->front().has_value());

  clock_.Advance(absl::Seconds(4));
  store_.refusals = {kFullDisk};
  const std::shared_ptr<std::vector<MaybeReply>> parked = turns_.back();
  EXPECT_THAT(Do(Creation(SomeSpec(), "a")), StatusIs(absl::StatusCode::kResourceExhausted));

  ASSERT_TRUE(parked->front().has_value());
  EXPECT_THAT(*parked->front(), IsOk());
}

// The longest that the API allows.
TEST_F(CoreLoopTest, AWorkerWhoseCallIsHeldIsNotSilent) {
  Report(core::WorkerPhase::kIdle, 20'000'000);
  const std::shared_ptr<std::vector<MaybeReply>> parked = turns_.back();
  for (int i = 1; i < 20; ++i) {
    clock_.Advance(absl::Seconds(1));
    Turn({});
    EXPECT_EQ(loop_.core().state().workers.at("w0").state, core::WorkerState::kAlive) << i;
  }
  ASSERT_FALSE(parked->front().has_value());

  clock_.Advance(absl::Seconds(1));
  Turn({});
  ASSERT_TRUE(parked->front().has_value());
  EXPECT_THAT(*parked->front(), IsOk());
  EXPECT_EQ(loop_.core().state().workers.at("w0").state, core::WorkerState::kAlive);
  clock_.Advance(absl::Seconds(5));
  Turn({});
  EXPECT_EQ(loop_.core().state().workers.at("w0").state, core::WorkerState::kSuspect)
      << "it was answered and does not call again";
}

TEST_F(CoreLoopTest, AConnectionThatEndsInAHeldCallIsNoticed) {
  core::Synchronize call{.worker = "w0", .poll_timeout_us = 20'000'000};
  call.description.incarnation = "i1";
  MaybeReply answer;
  bool is_awaited = true;
  std::vector<QueuedCommand> batch;
  batch.push_back({{"w0", call},
                   [&answer](auto reply) { answer = std::move(reply); },
                   [&is_awaited] { return is_awaited; }});
  loop_.HandleBatch(std::move(batch));
  for (int i = 0; i < 12; ++i) {
    clock_.Advance(absl::Seconds(1));
    Turn({});
  }
  is_awaited = false;
  clock_.Advance(absl::Seconds(1));
  Turn({});
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(*answer, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(loop_.core().state().workers.at("w0").state, core::WorkerState::kAlive)
      << "it has had no time to call again";
  EXPECT_LE(loop_.TimeToWait(), absl::Seconds(2));
  clock_.Advance(absl::Seconds(2));
  Turn({});
  EXPECT_EQ(loop_.core().state().workers.at("w0").state, core::WorkerState::kSuspect);
}

// The worker has become silent, which cannot be written down.
TEST_F(CoreLoopTest, PausesBeforeItTriesAFullDiskAgain) {
  Report(core::WorkerPhase::kIdle);
  clock_.Advance(absl::Minutes(1));
  ASSERT_EQ(loop_.TimeToWait(), absl::ZeroDuration());

  store_.refusals = {kFullDisk};
  Turn({});
  EXPECT_EQ(loop_.TimeToWait(), absl::Seconds(1));

  clock_.Advance(absl::Seconds(1));
  Turn({});
  EXPECT_EQ(loop_.core().state().workers.at("w0").state, core::WorkerState::kSuspect);
}

}  // namespace
}  // namespace assay::runtime
