// Datasets that nodes are told to keep: who is told what when, and that neither a restart nor a
// node that leaves loses or repeats it.

#include "server/core/cache_orders.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/desired.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::kSecond;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CacheOrdersTest : public ::testing::Test {
 protected:
  CacheOrdersTest() {
    world_.caches = {{"w0", 1}, {"w1", 1}};
    for (const char* worker : {"w0", "w1", "w2"})
      EXPECT_THAT(world_.Sync(worker), IsOk());
  }

  absl::StatusOr<std::vector<std::string>> Order(CacheAction action,
                                                 std::vector<std::string> workers = {}) {
    const auto reply = world_.Do(OrderCaches{"cosmo32", action, std::move(workers)}, "root");
    if (!reply.ok()) return reply.status();
    return std::get<CachesReply>(*reply).workers;
  }
  absl::StatusOr<std::vector<std::string>> Stage(std::vector<std::string> workers = {}) {
    return Order(CacheAction::kStage, std::move(workers));
  }
  // What the worker is told to do in its cache; 0: nothing.
  int64_t Told(const std::string& worker) {
    const std::optional<CacheOrder> order = world_.Sync(worker)->cache;
    return order.has_value() ? order->number : 0;
  }
  static WorkerReport Done(int64_t number, const std::string& problem = "") {
    return {.cache = CacheReport{.number = number, .is_done = true, .problem = problem}};
  }
  static WorkerReport Held(int64_t number) {
    WorkerReport report = Done(number, "it is held by a run");
    report.cache->is_temporary = true;
    return report;
  }
  const std::vector<CacheOrder>& orders(const std::string& worker) {
    return world_.worker(worker).cache_orders;
  }

  World world_;
};

TEST_F(CacheOrdersTest, AllNodesWithACacheAreToldUntilTheySayThatItIsDone) {
  EXPECT_THAT(*Stage(), ElementsAre("w0", "w1")) << "w2 has none";
  const Desired desired = *world_.Sync("w0");
  EXPECT_EQ(desired.action, DesiredAction::kIdle);
  ASSERT_TRUE(desired.cache.has_value());
  EXPECT_EQ(desired.cache->dataset, "cosmo32");
  EXPECT_EQ(desired.cache->digest, "d1");
  EXPECT_FALSE(IsSatisfied(desired, {})) << "it has to be told";
  EXPECT_TRUE(IsSatisfied(desired, {.cache = CacheReport{.number = desired.cache->number}}));
  EXPECT_EQ(Told("w0"), desired.cache->number) << "again, were the answer lost";

  EXPECT_FALSE(world_.Sync("w0", Done(desired.cache->number))->cache.has_value());
  EXPECT_EQ(orders("w0").front().state, CacheOrderState::kDone);
  EXPECT_EQ(orders("w1").front().state, CacheOrderState::kPending);
  EXPECT_FALSE(world_.Sync("w2")->cache.has_value());
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(CacheOrdersTest, AFailureIsKeptWithItsSentenceAndANewOrderTriesAgain) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  const int64_t first = Told("w0");
  EXPECT_FALSE(world_.Sync("w0", Done(first, "the disk is full"))->cache.has_value());
  ASSERT_THAT(orders("w0"), SizeIs(1));
  EXPECT_EQ(orders("w0").front().state, CacheOrderState::kFailed);
  EXPECT_EQ(orders("w0").front().reason, "the disk is full");

  ASSERT_THAT(Stage({"w0"}), IsOk());
  EXPECT_GT(Told("w0"), first);
  EXPECT_GT(world_.Sync("w0", Done(first, "late word of the one before"))->cache->number, first);
  ASSERT_THAT(orders("w0"), SizeIs(1)) << "the last for each dataset";
  EXPECT_EQ(orders("w0").front().state, CacheOrderState::kPending);
}

TEST_F(CacheOrdersTest, WhatMayPassIsTriedAgainAfterLongerAndLongerPauses) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  int64_t number = Told("w0");
  for (const int64_t pause_s : {5, 10, 20, 40}) {
    EXPECT_FALSE(world_.Sync("w0", Held(number))->cache.has_value()) << "it is not at it";
    ASSERT_THAT(orders("w0"), SizeIs(1));
    EXPECT_EQ(orders("w0").front().state, CacheOrderState::kPending);
    EXPECT_EQ(orders("w0").front().reason, "it is held by a run");
    EXPECT_EQ(orders("w0").front().retry_at_us, world_.now_us() + pause_s * kSecond);
    world_.Wait(pause_s * kSecond - 1);
    EXPECT_EQ(Told("w0"), 0);
    EXPECT_EQ(world_.core().NextWakeupUs(), world_.now_us() + 1) << "without anybody's asking";
    world_.Wait(1);
    EXPECT_GT(Told("w0"), number) << "under a new number, so that late word is of the try before";
    EXPECT_EQ(world_.Sync("w0", Held(number))->cache->failure_count,
              orders("w0").front().failure_count);
    number = Told("w0");
  }
  EXPECT_EQ(orders("w0").front().failure_count, 4);
  ASSERT_THAT(world_.Sync("w0", Done(number)), IsOk());
  EXPECT_EQ(orders("w0").front().state, CacheOrderState::kDone);
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(CacheOrdersTest, ItIsTriedForADayAtMost) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  const int64_t started_us = world_.now_us();
  while (orders("w0").front().state == CacheOrderState::kPending) {
    ASSERT_THAT(world_.Sync("w0", Held(Told("w0"))), IsOk());
    world_.Wait(orders("w0").front().retry_at_us == 0
                    ? 0
                    : orders("w0").front().retry_at_us - world_.now_us());
  }
  EXPECT_EQ(orders("w0").front().state, CacheOrderState::kFailed);
  EXPECT_EQ(orders("w0").front().failure_count, kCacheTryCountMax);
  EXPECT_GT(world_.now_us() - started_us, 12 * 3600 * kSecond);
  EXPECT_LT(world_.now_us() - started_us, 24 * 3600 * kSecond);
}

TEST_F(CacheOrdersTest, ANewOrderStartsAnewAndARestartDoesNot) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  ASSERT_THAT(world_.Sync("w0", Held(Told("w0"))), IsOk());
  Core restarted(Policy{.secret = "secret"}, world_.Fold(), world_.now_us());
  Outcome outcome = restarted.Handle({}, world_.now_us() + 5 * kSecond);
  const CacheOrder& kept = restarted.state().workers.at("w0").cache_orders.front();
  EXPECT_EQ(kept.retry_at_us, 0) << "its time has come";
  EXPECT_EQ(kept.failure_count, 1);

  ASSERT_THAT(Stage({"w0"}), IsOk());
  ASSERT_THAT(orders("w0"), SizeIs(1));
  EXPECT_EQ(orders("w0").front().failure_count, 0);
  EXPECT_NE(Told("w0"), 0) << "at once";
}

TEST_F(CacheOrdersTest, WhoWaitsForAnotherTryHoldsUpOnlyItsOwnDataset) {
  Dataset other = core::testing::SomeDataset();
  other.id = "other";
  other.digest = "d2";
  ASSERT_THAT(world_.Do(AddDataset{other}), IsOk());
  ASSERT_THAT(Stage({"w0"}), IsOk());
  ASSERT_THAT(world_.Sync("w0", Held(Told("w0"))), IsOk());
  ASSERT_THAT(Order(CacheAction::kPin, {"w0"}), IsOk());
  EXPECT_EQ(Told("w0"), 0) << "there is nothing to pin until it is staged";
  ASSERT_THAT(world_.Do(OrderCaches{"other", CacheAction::kStage, {"w0"}}), IsOk());
  EXPECT_EQ(world_.Sync("w0")->cache->dataset, "other");
  world_.Wait(5 * kSecond);
  const Desired desired = *world_.Sync("w0");
  EXPECT_EQ(desired.cache->action, CacheAction::kStage);
  const Desired next = *world_.Sync("w0", Done(desired.cache->number));
  EXPECT_EQ(next.cache->action, CacheAction::kPin);
}

TEST_F(CacheOrdersTest, PinsStandBesideWhatIsStagedAndTheOppositePinTakesTheirPlace) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  ASSERT_THAT(Order(CacheAction::kPin, {"w0"}), IsOk());
  ASSERT_THAT(orders("w0"), SizeIs(2));
  ASSERT_THAT(Order(CacheAction::kUnpin, {"w0"}), IsOk());
  ASSERT_THAT(orders("w0"), SizeIs(2));
  EXPECT_EQ(orders("w0").back().action, CacheAction::kUnpin);
  ASSERT_THAT(Order(CacheAction::kEvict, {"w0"}), IsOk());
  ASSERT_THAT(orders("w0"), SizeIs(2));
  EXPECT_EQ(orders("w0").front().action, CacheAction::kUnpin) << "first what was ordered first";
  EXPECT_EQ(orders("w0").back().action, CacheAction::kEvict);
}

TEST_F(CacheOrdersTest, AnOrderMayNameAnotherFolderOnTheNodes) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  const int64_t registered = Told("w0");
  ASSERT_THAT(world_.Do(OrderCaches{"cosmo32", CacheAction::kStage, {"w0"}, "/data/packed"}),
              IsOk());
  const Desired desired = *world_.Sync("w0");
  EXPECT_EQ(desired.cache->path, "/data/packed");
  EXPECT_EQ(desired.cache->digest, "d1") << "by which the node checks what is there";
  EXPECT_GT(desired.cache->number, registered);
  EXPECT_THAT(world_.Do(OrderCaches{"cosmo32", CacheAction::kStage, {"w0"}, "packed"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("an absolute path")));
  EXPECT_THAT(world_.Do(OrderCaches{"cosmo32", CacheAction::kPin, {"w0"}, "/data"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("PIN copies nothing")));
}

TEST_F(CacheOrdersTest, TheSameOrderTwiceIsOneAndTheOppositeTakesItsPlace) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  const int64_t staged = Told("w0");
  EXPECT_THAT(*Stage({"w0", "w0"}), ElementsAre("w0"));
  EXPECT_EQ(Told("w0"), staged);
  ASSERT_THAT(Order(CacheAction::kEvict, {"w0"}), IsOk());
  const Desired desired = *world_.Sync("w0", {.cache = CacheReport{.number = staged}});
  ASSERT_TRUE(desired.cache.has_value());
  EXPECT_EQ(desired.cache->action, CacheAction::kEvict);
  EXPECT_FALSE(IsSatisfied(desired, {.cache = CacheReport{.number = staged}}))
      << "it is to end what it does";
}

TEST_F(CacheOrdersTest, ARunComesBesideTheOrderWhichGoesOnAfterwards) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  const int64_t number = Told("w0");
  world_.Do(DrainWorker{"w1", ""}).IgnoreError();
  world_.Do(DrainWorker{"w2", ""}).IgnoreError();
  SubmissionSpec spec = SomeSpec();
  spec.node_count = 1;
  spec.run_count = 1;
  const SubmissionId id = world_.Submit(spec);
  const RunId run = world_.submission(id).runs.front();
  const Desired desired = *world_.Sync("w0", {.cache = CacheReport{.number = number}});
  EXPECT_EQ(desired.action, DesiredAction::kExecute);
  EXPECT_EQ(desired.cache->number, number) << "it knows, and waits by itself";
  world_.Succeed(run);
  EXPECT_EQ(Told("w0"), number);
}

TEST_F(CacheOrdersTest, ARestartOfTheCoordinatorKeepsWhatIsPending) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  const int64_t number = Told("w0");
  Core restarted(Policy{.secret = "secret"}, world_.Fold(), world_.now_us());
  Synchronize call{.worker = "w0", .description = world_.Describe("w0")};
  const Outcome outcome =
      restarted.Handle({{.principal = "w0", .body = call}}, world_.now_us() + 1);
  ASSERT_THAT(outcome.replies.front(), IsOk());
  const Desired desired = std::get<SynchronizeReply>(*outcome.replies.front()).desired;
  ASSERT_TRUE(desired.cache.has_value());
  EXPECT_EQ(desired.cache->number, number);
}

TEST_F(CacheOrdersTest, ANewAgentOfTheNodeGetsTheOrderAndOneWithoutACacheFailsIt) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  const int64_t number = Told("w0");
  world_.incarnations["w0"] = "i2";
  EXPECT_EQ(Told("w0"), number);
  world_.incarnations["w0"] = "i3";
  world_.caches.erase("w0");
  EXPECT_EQ(Told("w0"), 0);
  EXPECT_THAT(orders("w0").front().reason, HasSubstr("no node_cache any more"));
}

TEST_F(CacheOrdersTest, OrdersOfANodeAreCarriedOutOneAfterTheOther) {
  Dataset other = core::testing::SomeDataset();
  other.id = "other";
  other.digest = "d2";
  ASSERT_THAT(world_.Do(AddDataset{other}), IsOk());
  ASSERT_THAT(world_.Do(OrderCaches{"other", CacheAction::kStage, {"w0"}}), IsOk());
  ASSERT_THAT(Stage({"w0"}), IsOk());
  const Desired first = *world_.Sync("w0");
  EXPECT_EQ(first.cache->dataset, "other");
  const Desired second = *world_.Sync("w0", Done(first.cache->number));
  ASSERT_TRUE(second.cache.has_value());
  EXPECT_EQ(second.cache->dataset, "cosmo32");
}

TEST_F(CacheOrdersTest, WhatCannotBeIsRefusedWithItsRemedyAndChangesNothing) {
  EXPECT_THAT(world_.Do(OrderCaches{"nothing", CacheAction::kStage, {}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("assay dataset add")));
  EXPECT_THAT(Stage({"w0", "w9"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is no node w9")));
  EXPECT_THAT(Stage({"w0", "w2"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("node w2 has no cache"), HasSubstr("set node_cache"))));
  EXPECT_THAT(orders("w0"), IsEmpty());
  world_.is_leaving = true;
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  world_.is_leaving = false;
  EXPECT_THAT(Stage({"w1"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("node w1 has left")));
  EXPECT_THAT(*Stage(), ElementsAre("w0"));
}

TEST_F(CacheOrdersTest, ANodeThatLeavesAndComesBackGoesOn) {
  ASSERT_THAT(Stage({"w0"}), IsOk());
  const int64_t number = Told("w0");
  world_.is_leaving = true;
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  world_.is_leaving = false;
  EXPECT_EQ(world_.worker("w0").state, WorkerState::kGone);
  EXPECT_EQ(Told("w0"), number);
}

TEST_F(CacheOrdersTest, AReportWithoutSenseIsRefused) {
  WorkerReport report{.cache = CacheReport{.bytes = -1}};
  EXPECT_THAT(world_.Sync("w0", report), StatusIs(absl::StatusCode::kInvalidArgument));
  report.cache = CacheReport{};
  report.cache->datasets.resize(kCachedDatasetCountMax + 1);
  EXPECT_THAT(world_.Sync("w0", report), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CacheOrdersTest, WhatEndedLongAgoMakesRoomForNewOrders) {
  for (size_t k = 0; k <= kCacheOrderCountMax; ++k) {
    Dataset dataset = core::testing::SomeDataset();
    dataset.id = absl::StrCat("set", k);
    ASSERT_THAT(world_.Do(AddDataset{dataset}), IsOk());
    ASSERT_THAT(world_.Do(OrderCaches{dataset.id, CacheAction::kStage, {"w0"}}), IsOk());
    if (k + 1 < kCacheOrderCountMax) {
      ASSERT_THAT(world_.Sync("w0", Done(Told("w0"))), IsOk());
    }
  }
  ASSERT_THAT(orders("w0"), SizeIs(kCacheOrderCountMax));
  EXPECT_EQ(orders("w0").front().dataset, "set1");
}

}  // namespace
}  // namespace assay::core
