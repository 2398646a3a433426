// What a hook is told: which changes, in which order, how often, and what is kept of that.

#include "server/notify/delivery.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/file.h"
#include "server/store/reader.h"
#include "server/store/store.h"
#include "tests/server/core/world.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::notify {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using core::RunId;
using core::testing::kSecond;
using core::testing::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Keeps what it is told; fails as often as it shall.
class KeepingHook final : public Hook {
 public:
  absl::Status Deliver(const std::string& document) override {
    ++attempt_count;
    if (failures_left > 0) {
      --failures_left;
      return absl::UnavailableError("exit code 1");
    }
    EXPECT_TRUE(absl::EndsWith(document, "}\n"));
    told.push_back(nlohmann::json::parse(document, nullptr, false));
    return absl::OkStatus();
  }
  std::vector<std::string> Kinds() const {
    std::vector<std::string> kinds;
    for (const nlohmann::json& one : told)
      kinds.push_back(one.value("kind", "?"));
    return kinds;
  }

  std::vector<nlohmann::json> told;
  int64_t attempt_count = 0;
  int64_t failures_left = 0;
};

class DeliveryTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Delivery>> TryOpen() {
    return Delivery::Open({.name = "mail",
                           .patterns = patterns_,
                           .web_url = "https://bench.example.org/",
                           .cursor_path = dir_.Path("mail.json")},
                          &clock_, *store::Reader::Open(path_), &hook_);
  }
  // As after the end of the daemon, of which the hook knows nothing.
  void Open() {
    delivery_.reset();
    auto delivery = TryOpen();
    ASSERT_THAT(delivery, IsOk());
    delivery_ = *std::move(delivery);
  }
  // Until it waits for a commit, or for time to pass; for how long that is.
  std::optional<absl::Duration> Run() {
    while (true) {
      const std::optional<absl::Duration> delay = delivery_->Step();
      if (!delay.has_value() || *delay > absl::ZeroDuration()) return delay;
    }
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  const std::string path_ = dir_.Path("assay.db");
  std::unique_ptr<store::Store> store_ = *store::Store::Open(path_);
  World world_{[this](const core::Outcome& outcome, const core::State& state) {
    CHECK_OK(store_->Commit(outcome, state));
  }};
  std::vector<std::string> patterns_ = {"entry.*", "run.*", "node.*"};
  KeepingHook hook_;
  std::unique_ptr<Delivery> delivery_;
};

TEST_F(DeliveryTest, AnEntrysLifeIsToldInOrder) {
  Open();
  const core::SubmissionId entry = world_.SubmitGang();
  world_.Succeed(RunId{1});
  ASSERT_THAT(world_.Do(core::CancelSubmission{entry, "a mistake"}), IsOk());
  EXPECT_EQ(Run(), std::nullopt);

  EXPECT_THAT(hook_.Kinds(),
              ElementsAre("entry.submitted", "entry.started", "run.succeeded", "entry.ended"));
  const nlohmann::json& end = hook_.told.back();
  EXPECT_EQ(end["schema"], "assay.notice/v1");
  EXPECT_EQ(end["event"], world_.state().last_seq);
  EXPECT_EQ(end["time"], "2023-11-14T22:13:20.000Z");
  EXPECT_EQ(end["state"], "CANCELLED");
  EXPECT_EQ(end["reason"], "cancelled by alice: a mistake");
  EXPECT_EQ(end["principal"], "alice");
  EXPECT_EQ(end["entry"]["id"], "e-1");
  EXPECT_EQ(end["entry"]["organization"], "lab");
  EXPECT_EQ(end["url"], "https://bench.example.org/entries/e-1");
  EXPECT_EQ(end["text"], "e-1 ended CANCELLED (lab, sys, cosmoflow closed)");
  const nlohmann::json& run = hook_.told[2];
  EXPECT_EQ(run["run"]["id"], "r-1");
  EXPECT_THAT(run["run"]["nodes"], ElementsAre("w0", "w1"));
  EXPECT_EQ(run["url"], "https://bench.example.org/runs/r-1");
}

TEST_F(DeliveryTest, AWithdrawalSaysWhoAndWhy) {
  Open();
  const core::SubmissionId entry = world_.SubmitGang();
  ASSERT_THAT(world_.Do(core::WithdrawSubmission{entry, "mis-cabled"}), IsOk());
  Run();

  EXPECT_THAT(hook_.Kinds(), ElementsAre("entry.submitted", "entry.started", "run.cancelled",
                                         "entry.ended", "entry.withdrawn"));
  EXPECT_EQ(hook_.told.back()["reason"], "withdrawn by alice: mis-cabled");
  EXPECT_EQ(hook_.told.back()["text"], "e-1 withdrawn (lab, sys, cosmoflow closed)");
}

TEST_F(DeliveryTest, AnEntryStartsOnceAndAFailureSaysWhy) {
  Open();
  world_.SubmitGang(1);
  world_.Finished("w1", RunId{1}, 137);
  world_.Finished("w0", RunId{1}, 9);
  for (const char* worker : {"w0", "w1"})
    ASSERT_THAT(world_.Sync(worker), IsOk());
  for (const char* worker : {"w0", "w1"})
    world_.Executing(worker, RunId{2});
  Run();

  EXPECT_THAT(hook_.Kinds(), ElementsAre("entry.submitted", "entry.started", "run.failed"));
  EXPECT_EQ(hook_.told[2]["reason"], "rank 1 on w1: killed by signal 9");
  EXPECT_EQ(hook_.told[2]["text"], "r-1 failed (lab, sys, cosmoflow closed)");
}

TEST_F(DeliveryTest, NodesGoAndComeBackOverTheEndOfTheDaemon) {
  Open();
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  world_.Wait(20 * kSecond);  // both SUSPECT, of which nobody is told
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  world_.Wait(880 * kSecond);
  ASSERT_THAT(world_.Do(core::DrainWorker{"w1", "memory\nerrors"}), IsOk());
  ASSERT_THAT(world_.Do(core::DrainWorker{"w1", "another reason"}), IsOk());
  Run();
  EXPECT_THAT(hook_.Kinds(), ElementsAre("node.lost", "node.drained"));
  EXPECT_EQ(hook_.told[0]["node"], "w0");
  EXPECT_EQ(hook_.told[1]["reason"], "memory\nerrors");
  EXPECT_EQ(hook_.told[1]["text"], "node w1 drained");
  EXPECT_EQ(hook_.told[1]["url"], "https://bench.example.org/fleet");

  Open();
  ASSERT_THAT(world_.Do(core::ResumeWorker{"w1"}), IsOk());
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  Run();
  EXPECT_THAT(hook_.Kinds(), ElementsAre("node.lost", "node.drained", "node.back", "node.back"));
}

TEST_F(DeliveryTest, TheFirstStartBeginsAtThePresentEnd) {
  world_.SubmitGang();
  Open();
  EXPECT_EQ(Run(), std::nullopt);
  EXPECT_THAT(hook_.told, IsEmpty());
  delivery_.reset();
  world_.Submit();  // while nobody is there
  Open();
  Run();
  EXPECT_THAT(hook_.Kinds(), ElementsAre("entry.submitted"));
}

TEST_F(DeliveryTest, OnlyWhatIsWantedIsTold) {
  patterns_ = {"run.failed", "entry.started"};
  Open();
  world_.SubmitGang();
  world_.Finished("w1", RunId{1}, 137);
  world_.Finished("w0", RunId{1}, 9);
  Run();
  EXPECT_THAT(hook_.Kinds(), ElementsAre("entry.started", "run.failed"));
}

TEST_F(DeliveryTest, AFailureIsRepeatedLaterAndLaterAndTheOrderStays) {
  Open();
  world_.Submit();
  world_.Submit();
  hook_.failures_left = 11;
  std::vector<absl::Duration> delays;
  for (std::optional<absl::Duration> delay = Run(); delay.has_value(); delay = Run()) {
    delays.push_back(*delay);
    clock_.Advance(*delay / 2);
    EXPECT_EQ(Run(), *delay - *delay / 2) << "a turn too early is no attempt";
    clock_.Advance(*delay - *delay / 2);
  }
  const absl::Duration s = absl::Seconds(1);
  EXPECT_THAT(delays, ElementsAre(s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 128 * s, 256 * s,
                                  300 * s, 300 * s));
  EXPECT_THAT(hook_.Kinds(), ElementsAre("entry.submitted", "entry.submitted"));
  EXPECT_EQ(hook_.told[0]["entry"]["id"], "e-1");
  const HookFigures figures = delivery_->figures();
  EXPECT_EQ(figures.delivered, 2);
  EXPECT_EQ(figures.failed_attempts, 11);
  EXPECT_EQ(figures.given_up, 0);
  EXPECT_EQ(figures.lag_seconds, 0);
}

TEST_F(DeliveryTest, WhatFailsForADayIsGivenUpAndTheNextHasItsTurn) {
  Open();
  world_.Submit();
  world_.Submit();
  hook_.failures_left = 1 << 20;
  const absl::Time start = clock_.Wall();
  while (delivery_->figures().given_up == 0) {
    const std::optional<absl::Duration> delay = delivery_->Step();
    ASSERT_TRUE(delay.has_value());
    clock_.Advance(*delay);
  }
  EXPECT_GE(clock_.Wall() - start, absl::Hours(24));
  EXPECT_LE(clock_.Wall() - start, absl::Hours(24) + kRetryMax);
  hook_.failures_left = 0;
  Run();
  ASSERT_THAT(hook_.Kinds(), ElementsAre("entry.submitted"));
  EXPECT_EQ(hook_.told[0]["entry"]["id"], "e-2");
  Open();
  EXPECT_EQ(Run(), std::nullopt) << "what was given up stays so";
  EXPECT_EQ(hook_.told.size(), 1u);
}

TEST_F(DeliveryTest, WhatWasNotToldWhenTheDaemonEndedIsToldAfterwards) {
  Open();
  world_.Submit();
  world_.Submit();
  hook_.failures_left = 1;
  EXPECT_NE(Run(), std::nullopt);
  EXPECT_GT(delivery_->figures().lag_seconds, 0);
  delivery_->Save();
  Open();
  Run();
  EXPECT_EQ(hook_.told.size(), 2u);
  Open();
  Run();
  EXPECT_EQ(hook_.told.size(), 2u) << "what was told is not told again";
}

TEST_F(DeliveryTest, APlaceBeyondTheLogOrNoPlaceIsNotBelieved) {
  Open();
  ASSERT_THAT(WriteFileAtomic(dir_.Path("mail.json"), "{\"away\":{},\"seq\":99}"), IsOk());
  Open();
  EXPECT_THAT(ReadCursor(dir_.Path("mail.json")),
              IsOkAndHolds(::testing::Optional(Cursor{.seq = world_.state().last_seq})));
  for (const char* text :
       {"", "{}", "[]", "{\"away\":{},\"seq\":\"1\"}", "{\"away\":1,\"seq\":1}"}) {
    ASSERT_THAT(WriteFileAtomic(dir_.Path("mail.json"), text), IsOk());
    EXPECT_THAT(TryOpen().status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("remove it")))
        << text;
  }
}

TEST(NoticeKindTest, AStarIsForAllOfAWord) {
  EXPECT_TRUE(IsKindOf("run.*", "run.failed"));
  EXPECT_TRUE(IsKindOf("run.failed", "run.failed"));
  for (const char* pattern : {"run", "run.", "*", ".*", "ru.*", "entry.*", "run.fail"})
    EXPECT_FALSE(IsKindOf(pattern, "run.failed")) << pattern;
}

}  // namespace
}  // namespace assay::notify
