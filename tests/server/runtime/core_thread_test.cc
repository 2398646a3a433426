#include "server/runtime/core_thread.h"

#include <atomic>
#include <future>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/store/reader.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/fake_clock.h"
#include "tests/support/in_time.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::runtime {
namespace {

using ::assay::testing::FakeClock;
using ::assay::testing::InTime;
using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using core::testing::Creation;
using core::testing::SomeSpec;
using ::testing::SizeIs;

using ReplyFuture = std::future<absl::StatusOr<core::Reply>>;

core::Synchronize Call(const std::string& worker, int64_t poll_timeout_us,
                       core::WorkerReport report = {}) {
  core::Synchronize call{.worker = worker, .report = std::move(report)};
  call.description.incarnation = "i1";
  call.poll_timeout_us = poll_timeout_us;
  return call;
}

// A coordinator without its API. Its thread can be held, so that commands pile up.
class CoreThreadTest : public ::testing::Test {
 protected:
  CoreThreadTest() { Open(); }
  ~CoreThreadTest() override { Close(); }

  void Open(CoreThreadOptions options = {}) {
    options.is_realtime_wanted = false;
    store_ = *store::Store::Open(path_);
    checkpointer_ = *store::Checkpointer::Open(path_);
    tokens_ = std::make_unique<TokenTable>();
    certificates_ = std::make_unique<CertificateTable>();
    watchers_ = std::make_unique<Watchers>();
    core::Core core({}, *store_->Load(), absl::ToUnixMicros(clock_.Wall()));
    thread_ = std::make_unique<CoreThread>(
        CoreThread::Parts{used_clock_, store_.get(), watchers_.get(), tokens_.get(),
                          certificates_.get()},
        checkpointer_.get(), std::move(core),
        [this](std::vector<core::Effect> effects) {
          for (core::Effect& effect : effects)
            effects_.push_back(std::move(effect));
        },
        options);
    thread_->Start();
    EXPECT_THAT(Do(core::AddDataset{core::testing::SomeDataset()}), IsOk());
  }

  void Close() {
    thread_.reset();
    store_.reset();
    checkpointer_.reset();
  }

  ReplyFuture Post(core::CommandBody body, const std::string& principal = "alice") {
    auto promise = std::make_shared<std::promise<absl::StatusOr<core::Reply>>>();
    ReplyFuture future = promise->get_future();
    thread_->Post({principal, std::move(body)},
                  [promise](absl::StatusOr<core::Reply> reply) { promise->set_value(reply); });
    return future;
  }

  absl::StatusOr<core::Reply> Do(core::CommandBody body) { return InTime(Post(std::move(body))); }

  // Holds the core thread in a callback until the result is set.
  std::promise<void> Hold() {
    std::promise<void> release;
    auto released = std::make_shared<std::future<void>>(release.get_future());
    auto held = std::make_shared<std::promise<void>>();
    std::future<void> is_held = held->get_future();
    thread_->Post({"alice", core::GetServerInfo{}}, [released, held](const auto&) {
      held->set_value();
      released->wait_for(std::chrono::minutes(2));
    });
    InTime(std::move(is_held));
    return release;
  }

  TempDir dir_;
  const std::string path_ = dir_.Path("assay.db");
  FakeClock clock_;
  const Clock* used_clock_ = &clock_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Checkpointer> checkpointer_;
  std::unique_ptr<TokenTable> tokens_;
  std::unique_ptr<CertificateTable> certificates_;
  std::unique_ptr<Watchers> watchers_;
  std::vector<core::Effect> effects_;  // read after a reply that followed them
  std::unique_ptr<CoreThread> thread_;
};

TEST_F(CoreThreadTest, WhatIsAcknowledgedIsInTheStore) {
  const auto reply = Do(Creation(SomeSpec(), "a"));

  ASSERT_THAT(reply, IsOk());
  const core::SubmissionId id = std::get<core::SubmissionReply>(*reply).id;
  EXPECT_EQ((*store::Reader::Open(path_))->GetSubmission(id)->submitter, "alice");
}

TEST_F(CoreThreadTest, CommitsAllThatWaitsAtOnce) {
  std::promise<void> release = Hold();
  std::atomic<int> commit_count = 0;
  watchers_->Subscribe({}, [&commit_count](int64_t) { ++commit_count; });
  std::vector<ReplyFuture> futures;
  for (int i = 0; i < 100; ++i)
    futures.push_back(Post(Creation(SomeSpec(), absl::StrCat(i))));

  release.set_value();
  std::set<core::SubmissionId> ids;
  for (ReplyFuture& future : futures) {
    const auto reply = InTime(std::move(future));
    ASSERT_THAT(reply, IsOk());
    ids.insert(std::get<core::SubmissionReply>(*reply).id);
  }

  EXPECT_THAT(ids, SizeIs(100));
  EXPECT_EQ(commit_count, 1);
}

// By a clock that goes on, so that commits have taken time. After a batch of many the thread looks
// for as many again.
TEST_F(CoreThreadTest, ACommandAloneIsAnsweredAfterACrowd) {
  Close();
  const RealClock real;
  used_clock_ = &real;
  Open();
  std::promise<void> release = Hold();
  std::vector<ReplyFuture> futures;
  for (int i = 0; i < 50; ++i)
    futures.push_back(Post(Creation(SomeSpec(), absl::StrCat(i))));
  release.set_value();
  for (ReplyFuture& future : futures)
    ASSERT_THAT(InTime(std::move(future)), IsOk());

  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(Do(Creation(SomeSpec(), absl::StrCat("alone", i))), IsOk());
  Close();
}

TEST_F(CoreThreadTest, RefusesWhenTooManyWaitButNotItsOwn) {
  Close();
  Open({.queue_limit = 2});
  std::promise<void> release = Hold();
  ReplyFuture first = Post(core::GetServerInfo{});
  ReplyFuture second = Post(core::GetServerInfo{});

  ReplyFuture refused = Post(core::GetServerInfo{});
  ReplyFuture own = Post(core::Tick{}, "coordinator");

  EXPECT_THAT(InTime(std::move(refused)), StatusIs(absl::StatusCode::kResourceExhausted));
  release.set_value();
  EXPECT_THAT(InTime(std::move(first)), IsOk());
  EXPECT_THAT(InTime(std::move(second)), IsOk());
  EXPECT_THAT(InTime(std::move(own)), IsOk());
}

TEST_F(CoreThreadTest, ParksAnIdleWorkerUntilThereIsWork) {
  ReplyFuture parked = Post(Call("w0", 3'000'000), "w0");
  ASSERT_THAT(Do(core::GetServerInfo{}), IsOk());
  ASSERT_EQ(parked.wait_for(std::chrono::seconds(0)), std::future_status::timeout);

  ASSERT_THAT(Do(Creation(SomeSpec(), "a")), IsOk());

  const auto reply = InTime(std::move(parked));
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(std::get<core::SynchronizeReply>(*reply).desired.action, core::DesiredAction::kExecute);
}

TEST_F(CoreThreadTest, AnswersAParkedCallWhenItsTimeIsUp) {
  ReplyFuture parked = Post(Call("w0", 3'000'000), "w0");
  ReplyFuture at_once = Post(Call("w1", 0), "w1");
  EXPECT_THAT(InTime(std::move(at_once)), IsOk());

  clock_.Advance(absl::Seconds(2));
  thread_->Poke();
  ASSERT_THAT(Do(core::GetServerInfo{}), IsOk());
  EXPECT_EQ(parked.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  clock_.Advance(absl::Seconds(2));
  thread_->Poke();

  EXPECT_EQ(std::get<core::SynchronizeReply>(*InTime(std::move(parked))).desired.action,
            core::DesiredAction::kIdle);
}

TEST_F(CoreThreadTest, AWorkerThatCallsAgainFreesItsEarlierCall) {
  ReplyFuture first = Post(Call("w0", 3'000'000), "w0");
  ReplyFuture second = Post(Call("w0", 3'000'000), "w0");

  EXPECT_THAT(InTime(std::move(first)), IsOk());
  EXPECT_EQ(second.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  thread_->Stop();
  EXPECT_THAT(InTime(std::move(second)), IsOk());
}

TEST_F(CoreThreadTest, ACallThatIsAnsweredAtOnceFreesTheEarlierOneToo) {
  ReplyFuture first = Post(Call("w0", 3'000'000), "w0");
  const core::WorkerReport unknown{core::WorkerPhase::kFinished, core::RunId{7}, 1, 0, "", {}};

  ASSERT_THAT(Do(Call("w0", 3'000'000, unknown)), IsOk());

  EXPECT_EQ(first.wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

TEST_F(CoreThreadTest, StopsAParkedTrainerAtOnce) {
  ASSERT_THAT(Do(Call("w0", 0)), IsOk());
  ASSERT_THAT(Do(Creation(SomeSpec(), "a")), IsOk());
  const core::WorkerReport executing{core::WorkerPhase::kExecuting, core::RunId{1}, 1, 0, "", {}};
  ReplyFuture parked = Post(Call("w0", 3'000'000, executing), "w0");

  ASSERT_THAT(Do(core::CancelSubmission{core::SubmissionId{1}, ""}), IsOk());

  EXPECT_EQ(std::get<core::SynchronizeReply>(*InTime(std::move(parked))).desired.action,
            core::DesiredAction::kStop);
}

TEST_F(CoreThreadTest, AWallClockSetForwardLosesNoWorker) {
  ASSERT_THAT(Do(Call("w0", 0)), IsOk());

  clock_.StepWall(absl::Hours(5));
  clock_.Advance(absl::Seconds(1));
  thread_->Poke();

  const auto reply = Do(core::ListWorkers{});
  EXPECT_EQ(std::get<core::WorkersReply>(*reply).workers[0].worker.state,
            core::WorkerState::kAlive);
}

TEST_F(CoreThreadTest, TimePassesWithoutCommands) {
  ASSERT_THAT(Do(Call("w0", 0)), IsOk());
  clock_.Advance(absl::Seconds(11));
  thread_->Poke();

  ASSERT_THAT(Do(core::Tick{}), IsOk());
  const auto reply = Do(core::ListWorkers{});

  EXPECT_EQ(std::get<core::WorkersReply>(*reply).workers[0].worker.state,
            core::WorkerState::kSuspect);
}

TEST_F(CoreThreadTest, ContinuesAfterARestartWhereItWas) {
  ASSERT_THAT(Do(Creation(SomeSpec(), "a")), IsOk());
  for (int restart = 0; restart < 3; ++restart) {
    Close();
    Open();
    const auto again = Do(Creation(SomeSpec(), "a"));
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(std::get<core::SubmissionReply>(*again).id, core::SubmissionId{1});
    const auto next = Do(Creation(SomeSpec(), absl::StrCat("b", restart)));
    EXPECT_EQ(std::get<core::SubmissionReply>(*next).id.number, restart + 2);
  }
}

TEST_F(CoreThreadTest, AsksForOutstandingVerdictsAfterARestart) {
  ASSERT_THAT(Do(Call("w0", 0)), IsOk());
  ASSERT_THAT(Do(Creation(SomeSpec(), "a")), IsOk());
  const core::WorkerReport finished{core::WorkerPhase::kFinished, core::RunId{1}, 1, 0, "", {}};
  ASSERT_THAT(Do(Call("w0", 0, finished)), IsOk());
  Close();
  effects_.clear();

  Open();
  Close();

  EXPECT_EQ(effects_, std::vector<core::Effect>{core::CheckLog{core::RunId{1}}});
}

TEST_F(CoreThreadTest, SurvivesAFullDisk) {
  thread_->Stop();
  ASSERT_THAT(store_->LimitPages(1), IsOk());  // never below what there is
  thread_.reset();
  core::Core core({}, *store_->Load(), absl::ToUnixMicros(clock_.Wall()));
  thread_ = std::make_unique<CoreThread>(
      CoreThread::Parts{&clock_, store_.get(), watchers_.get(), tokens_.get(), certificates_.get()},
      checkpointer_.get(), std::move(core), [](const std::vector<core::Effect>&) {},
      CoreThreadOptions{.is_realtime_wanted = false});
  thread_->Start();
  core::SubmissionSpec large = SomeSpec();
  large.system.assign(4000, 'x');

  absl::StatusOr<core::Reply> reply = core::Reply(core::Done{});
  int64_t accepted = 0;
  for (; accepted < 1000 && reply.ok(); ++accepted)
    reply = Do(Creation(large, absl::StrCat(accepted)));

  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kResourceExhausted));
  const auto info = Do(core::GetServerInfo{});
  ASSERT_THAT(info, IsOk()) << "it still answers";
  EXPECT_EQ(std::get<core::ServerInfo>(*info).submission_count, accepted - 1);
}

// A label that no row can hold, among commands that are fine, in one batch.
TEST_F(CoreThreadTest, RefusesWhatCannotBeStoredAndNothingBesideIt) {
  store_->LimitRowBytes(1 << 20);
  ReplyFuture parked = Post(Call("w0", 3'000'000), "w0");
  std::promise<void> release = Hold();
  ReplyFuture before = Post(Creation(SomeSpec(), "before"));
  core::Synchronize large = Call("w1", 0);
  large.description.labels["rack"] = std::string(2 << 20, 'x');
  ReplyFuture guilty = Post(large, "w1");
  ReplyFuture waiting = Post(Call("w2", 3'000'000), "w2");
  ReplyFuture after = Post(Creation(SomeSpec(), "after"));
  const int64_t seq_before = watchers_->committed_seq();

  release.set_value();

  EXPECT_THAT(InTime(std::move(guilty)), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(std::get<core::SubmissionReply>(*InTime(std::move(before))).id, core::SubmissionId{1});
  EXPECT_EQ(std::get<core::SubmissionReply>(*InTime(std::move(after))).id, core::SubmissionId{2});
  // Both workers have something to do now: neither was forgotten in its call.
  for (ReplyFuture* call : {&parked, &waiting}) {
    const auto reply = call->get();
    ASSERT_THAT(reply, IsOk());
    EXPECT_EQ(std::get<core::SynchronizeReply>(*reply).desired.action,
              core::DesiredAction::kExecute);
  }
  const auto workers = Do(core::ListWorkers{});
  EXPECT_THAT(std::get<core::WorkersReply>(*workers).workers, SizeIs(2)) << "w1 has not called";
  EXPECT_GT(watchers_->committed_seq(), seq_before);
  const core::State kept = *store_->Load();
  Close();
  Open();
  EXPECT_EQ(*store_->Load(), kept);
}

TEST_F(CoreThreadTest, AVerdictThatCannotBeStoredIsSaidInWords) {
  ASSERT_THAT(Do(Call("w0", 0)), IsOk());
  ASSERT_THAT(Do(Creation(SomeSpec(), "a")), IsOk());
  const core::WorkerReport finished{core::WorkerPhase::kFinished, core::RunId{1}, 1, 0, "", {}};
  ASSERT_THAT(Do(Call("w0", 0, finished)), IsOk());
  store_->LimitRowBytes(1 << 20);
  core::LogChecked checked{.run = core::RunId{1}};
  checked.facts.findings.push_back({.found = std::string(2 << 20, 'x')});

  EXPECT_THAT(InTime(Post(checked, "coordinator")), IsOk());

  const absl::StatusOr<core::Run> run = store_->LoadRun(core::RunId{1});
  EXPECT_EQ(run->state, core::RunState::kFailed);
  EXPECT_THAT(run->state_reason, ::testing::HasSubstr("cannot be stored"));
}

TEST_F(CoreThreadTest, KeepsTheLastOfTheDiskForRunsUnderWay) {
  ASSERT_THAT(Do(Creation(SomeSpec(), "before")), IsOk());
  Close();
  Open({.loop = {.disk_reserve_bytes = std::numeric_limits<int64_t>::max()}});

  const absl::StatusOr<core::Reply> refused = Do(Creation(SomeSpec(), "after"));
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(refused.status().message(), ::testing::HasSubstr("almost full"));
  EXPECT_THAT(Do(core::ImportSubmission{}), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Do(core::NoteSubmission{.submission = core::SubmissionId{1}, .text = "odd"}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  const auto placed = Do(Call("w1", 0));
  ASSERT_THAT(placed, IsOk()) << "a worker goes on";
  EXPECT_THAT(Do(core::CancelSubmission{core::SubmissionId{1}, "no room"}), IsOk());
}

TEST_F(CoreThreadTest, RefusesAParkedCallWhoseCertificateIsRevoked) {
  ReplyFuture parked = Post(Call("w0", 3'000'000), "w0");
  ReplyFuture other = Post(Call("w1", 3'000'000), "w1");
  ASSERT_THAT(Do(core::GetServerInfo{}), IsOk());
  ASSERT_EQ(parked.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(certificates_->ValidFrom("w0"), 0);

  ASSERT_THAT(Do(core::RevokeWorker{"w0", ""}), IsOk());

  EXPECT_THAT(InTime(std::move(parked)), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_EQ(other.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(certificates_->ValidFrom("w0"), 1);
  EXPECT_EQ(certificates_->ValidFrom("w1"), 0);
  Close();
  Open();
  EXPECT_EQ(certificates_->ValidFrom("w0"), 1) << "a new start remembers";
}

TEST_F(CoreThreadTest, TellsTheTokenTableAndTheWatchers) {
  std::atomic<int64_t> seen = 0;
  watchers_->Subscribe(core::SubmissionId{1}, [&seen](int64_t seq) { seen = seq; });
  const std::string hash(64, '1');

  ASSERT_THAT(Do(core::CreateToken{.role = "operator",
                                   .principal = "root",
                                   .secret_sha256 = hash,
                                   .expires_at_us = absl::ToUnixMicros(clock_.Wall()) + 1}),
              IsOk());
  EXPECT_EQ(seen, 0) << "a token concerns no submission";
  ASSERT_THAT(Do(Creation(SomeSpec(), "a")), IsOk());

  EXPECT_EQ(seen, watchers_->committed_seq());
  EXPECT_EQ(tokens_->Find(hash)->principal, "root");
  EXPECT_EQ(tokens_->Find("x"), std::nullopt);
  ASSERT_THAT(Do(core::RevokeToken{core::TokenId{1}}), IsOk());
  EXPECT_TRUE(tokens_->Find(hash)->is_revoked);

  clock_.Advance(absl::Hours(24 * 31));
  ASSERT_THAT(Post(core::Tick{}, std::string(core::kCoordinator)).get(), IsOk());
  EXPECT_EQ(tokens_->Find(hash), std::nullopt) << "what the core forgets is nowhere in memory";
}

TEST_F(CoreThreadTest, RefusesAfterItsEnd) {
  thread_->Stop();

  EXPECT_THAT(Do(core::GetServerInfo{}), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace assay::runtime
