// Runs are placed where their dataset is, among nodes that are equal otherwise, and never later for
// it.

#include "server/core/cache_placement.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using core::testing::Creation;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CachePlacementTest : public ::testing::Test {
 protected:
  static WorkerReport With(const std::string& digest, int64_t files = 10) {
    CacheReport report;
    report.datasets = {{.digest = digest, .files = files, .files_total = 10}};
    return {.cache = report};
  }
  // w0, w1, ... call; those of `cached` have the dataset.
  void Arrive(int count, const std::set<std::string>& cached) {
    for (int k = 0; k < count; ++k) {
      const std::string name = absl::StrCat("w", k);
      world_.caches[name] = 1;
      ASSERT_THAT(world_.Sync(name, cached.contains(name) ? With("d1") : WorkerReport{}), IsOk());
    }
  }
  static SubmissionSpec OfNodes(int count) {
    SubmissionSpec spec = SomeSpec();
    spec.node_count = count;
    return spec;
  }
  std::vector<std::string> NodesOf(SubmissionId id, size_t run = 0) {
    std::vector<std::string> names;
    for (const RunNode& node : world_.run(world_.submission(id).runs.at(run)).nodes)
      names.push_back(node.worker);
    return names;
  }
  const core::Run& FirstOf(SubmissionId id) {
    return world_.run(world_.submission(id).runs.front());
  }

  World world_;
};

TEST_F(CachePlacementTest, ARunGoesToTheNodesThatHaveItsDataset) {
  Arrive(4, {"w1", "w3"});
  const SubmissionId id = world_.Submit(OfNodes(3));
  EXPECT_THAT(NodesOf(id), ElementsAre("w0", "w1", "w3")) << "ranks follow names";
  EXPECT_THAT(FirstOf(id).cached_workers, ElementsAre("w1", "w3"));
  EXPECT_EQ(world_.Fold(), world_.state()) << "the log alone says it";
  const auto reply = world_.Do(ExplainSubmission{id});
  EXPECT_THAT(std::get<Explanation>(*reply).explanation,
              HasSubstr("when placed, 2 of the 3 nodes had dataset cosmo32 in the cache"));
}

TEST_F(CachePlacementTest, OnlyAllOfTheRegisteredDatasetCounts) {
  Arrive(1, {});
  world_.caches["w1"] = world_.caches["w2"] = 1;
  ASSERT_THAT(world_.Sync("w1", With("d1", 9)), IsOk());
  ASSERT_THAT(world_.Sync("w2", With("another digest")), IsOk());
  EXPECT_THAT(NodesOf(world_.Submit()), ElementsAre("w0"));
}

TEST_F(CachePlacementTest, WhereStagingIsTimedOrNothingIsStagedItMakesNoDifference) {
  Arrive(3, {"w2"});
  CreateSubmission timed = Creation(SomeSpec(), "timed");
  timed.rules.is_staging_timed = true;
  const auto reply = world_.Do(timed);
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(NodesOf(std::get<SubmissionReply>(*reply).id), ElementsAre("w0"));
  SubmissionSpec unstaged = SomeSpec();
  unstaged.staging = "none";
  const SubmissionId id = world_.Submit(unstaged);
  EXPECT_THAT(NodesOf(id), ElementsAre("w1"));
  EXPECT_THAT(FirstOf(id).cached_workers, IsEmpty());
}

TEST_F(CachePlacementTest, NoRunWaitsForANodeThatHasItAndNoneLosesItsTurn) {
  Arrive(2, {"w1"});
  const SubmissionId first = world_.Submit();
  EXPECT_THAT(NodesOf(first), ElementsAre("w1"));
  const SubmissionId second = world_.Submit();
  EXPECT_THAT(NodesOf(second), ElementsAre("w0")) << "w1 is busy";
  const SubmissionId pair = world_.Submit(OfNodes(2));
  const SubmissionId last = world_.Submit();
  world_.Succeed(FirstOf(first).id);
  EXPECT_EQ(FirstOf(last).state, RunState::kQueued) << "w1 is kept for the run before it";
  world_.Succeed(FirstOf(second).id);
  EXPECT_THAT(NodesOf(pair), ElementsAre("w0", "w1"));
}

TEST_F(CachePlacementTest, NoNodeOfAnotherTypeTakesThePlaceOfOne) {
  for (const auto& [name, model] :
       std::map<std::string, std::string>{{"w0", "A"}, {"w1", "B"}, {"w2", "B"}, {"w3", "A"}}) {
    Synchronize call{.worker = name, .description = world_.Describe(name)};
    call.description.capabilities.cpu_model = model;
    call.description.capabilities.cache_bytes = 1;
    if (name >= "w2") call.report = With("d1");
    ASSERT_THAT(world_.Do(call, name), IsOk());
  }
  EXPECT_THAT(NodesOf(world_.Submit()), ElementsAre("w3")) << "w0, and w3 is of its type";
  EXPECT_THAT(NodesOf(world_.Submit(OfNodes(2))), ElementsAre("w0", "w2"));
}

TEST_F(CachePlacementTest, NoNodeThatOthersMayNeedForItsLabelsTakesThePlaceOfOne) {
  world_.labels["w1"] = {{"memory", "large"}};
  Arrive(3, {"w1"});
  EXPECT_THAT(NodesOf(world_.Submit()), ElementsAre("w0"))
      << "w1 is left to those who ask for its label";
}

TEST_F(CachePlacementTest, TheRunsOfASetKeepTheirNodesWhateverOthersHave) {
  Arrive(2, {});
  SubmissionSpec spec = SomeSpec();
  spec.run_count = 2;
  const SubmissionId id = world_.Submit(spec);
  EXPECT_THAT(NodesOf(id), ElementsAre("w0"));
  ASSERT_THAT(world_.Sync("w1", With("d1")), IsOk());
  world_.Succeed(FirstOf(id).id);
  EXPECT_THAT(NodesOf(id, 1), ElementsAre("w0"));
}

TEST_F(CachePlacementTest, ACoordinatorThatHasRestartedPlacesByWhatItIsToldAnew) {
  Arrive(2, {"w1"});
  Core restarted(Policy{.secret = "secret"}, world_.Fold(), world_.now_us());
  const auto call = [&](const std::string& name, const WorkerReport& report) {
    return Command{.principal = name,
                   .body = Synchronize{
                       .worker = name, .description = world_.Describe(name), .report = report}};
  };
  const auto placed_on = [&restarted] {
    return restarted.state().runs.begin()->second.nodes.front().worker;
  };
  const Outcome outcome =
      restarted.Handle({{.principal = "alice", .body = Creation(SomeSpec(), "r")}, call("w0", {})},
                       world_.now_us() + 1);
  ASSERT_THAT(outcome.replies.front(), IsOk());
  EXPECT_EQ(placed_on(), "w0") << "w1 has not called, and is not waited for";
}

}  // namespace
}  // namespace assay::core
